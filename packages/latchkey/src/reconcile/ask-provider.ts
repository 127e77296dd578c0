/** One question to a provider: with a deadline, and an answer that is checked before it is believed. */
import { LatchkeyError } from '../ports/errors.ts'
import type { FoundVerdict, Lookup } from '../ports/reconciliation.ts'
import { downstreamKey } from '../engine/execution.ts'
import { fromJson } from '../engine/steps/json.ts'
import type { Parts } from './host.ts'
import type { Registered } from './registration.ts'
import { checkedVerdict } from './verdict.ts'

export type Asked =
  | { readonly kind: 'found'; readonly verdict: FoundVerdict }
  | { readonly kind: 'still-unknown' }
  | {
      readonly kind: 'failed'
      readonly why: 'threw' | 'timeout' | 'malformed' | 'nobody-to-ask'
      readonly error: unknown
    }
  /** The row is gone, or nobody waits for an answer any more. */
  | { readonly kind: 'dropped' }

export async function askProvider(
  parts: Parts,
  registered: Registered,
  { lookup, stopping }: { readonly lookup: Lookup; readonly stopping: AbortSignal },
): Promise<Asked> {
  const asking = await questionOf(parts, registered, lookup)
  if (asking === undefined) return { kind: 'dropped' }
  if (asking.ask === undefined) {
    const message = `${registered.operation}: no effect is open, and no lookupWhole is registered`
    return { kind: 'failed', why: 'nobody-to-ask', error: new LatchkeyError('misconfigured', message) }
  }
  const answer = await bounded(parts, { ...asking, ask: asking.ask, timeoutMs: registered.timeoutMs, stopping })
  if (answer.kind !== 'answered') return answer
  try {
    const { outcomeVersion } = parts.keeping(registered.operation)
    const verdict = checkedVerdict(
      `the verdict of the look-up of ${registered.operation}`,
      answer.value,
      outcomeVersion,
    )
    return verdict === 'still-unknown' ? { kind: verdict } : { kind: 'found', verdict }
  } catch (error) {
    return { kind: 'failed', why: 'malformed', error }
  }
}

interface Asking {
  readonly ask: Registered['lookup'] | undefined
  readonly question: object
}

async function questionOf(
  { store, call, telemetry }: Parts,
  { kind, lookup: askEffect, lookupWhole }: Registered,
  lookup: Lookup,
): Promise<Asking | undefined> {
  const { identity, attempts, unknownForMs, createdAtMs, effect } = lookup
  const basic = { ...identity, attempts, unknownForMs, createdAtMs }
  if (kind === 'guarded') {
    const keyOf = (name: string, shape?: 'uuid' | 'opaque') => downstreamKey(identity.id, name, shape)
    return { ask: askEffect, question: { ...basic, downstreamKey: keyOf } }
  }
  const journal = await call('read journal', async () => store.steps?.readJournal(identity.id))
  if (journal === undefined) return undefined
  if (journal.work === undefined) {
    const { id, operation } = identity
    telemetry.report('nobody is asked about a row whose journal cannot be read', {
      operation,
      identity: id,
      detail: journal.why,
    })
    return undefined
  }
  const phased = { ...basic, input: fromJson(journal.work.input), version: journal.work.version }
  if (effect === undefined) return { ask: lookupWhole, question: phased }
  const { name, epoch } = effect
  const key = downstreamKey(identity.id, name, 'uuid', epoch)
  return { ask: askEffect, question: { ...phased, effect: { name, epoch }, key } }
}

interface BoundedAsking extends Asking {
  readonly ask: Registered['lookup']
  readonly timeoutMs: number
  readonly stopping: AbortSignal
}

type Answered = { readonly kind: 'answered'; readonly value: unknown } | Extract<Asked, { kind: 'failed' | 'dropped' }>

/** A function that does not listen to its signal is left behind; what it says later is not heard. */
async function bounded({ clock }: Parts, { ask, question, timeoutMs, stopping }: BoundedAsking): Promise<Answered> {
  const deadline = new AbortController()
  const overdue = new LatchkeyError('outcome-unknown', `no verdict within ${timeoutMs} ms`)
  const stop = () => deadline.abort(stopping.reason)
  const late = new Promise<Answered>(resolve => {
    deadline.signal.addEventListener('abort', () => {
      resolve(stopping.aborted ? { kind: 'dropped' } : { kind: 'failed', why: 'timeout', error: overdue })
    })
  })
  stopping.addEventListener('abort', stop, { once: true })
  const cancel = clock.after(timeoutMs, () => deadline.abort(overdue))
  // The question of this operation's kind, as it was registered.
  const asked = Promise.resolve().then(() => ask({ ...question, signal: deadline.signal } as never))
  try {
    const answered = asked.then((value): Answered => ({ kind: 'answered', value }))
    return await Promise.race([answered, late])
  } catch (error) {
    return { kind: 'failed', why: 'threw', error }
  } finally {
    cancel()
    stopping.removeEventListener('abort', stop)
  }
}
