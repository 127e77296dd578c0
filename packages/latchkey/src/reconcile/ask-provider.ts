/** One question to a provider, with a deadline; its answer is checked before it is used. */
import { LatchkeyError } from '../ports/errors.ts'
import type { FoundVerdict, Lookup } from '../ports/reconciliation.ts'
import { downstreamKey } from '../engine/execution.ts'
import { fromJson } from '../engine/steps/json.ts'
import type { ReconcilerContext } from './host.ts'
import type { Registered } from './registration.ts'
import { checkedVerdict } from './verdict.ts'

export type ProviderReply =
  | { readonly kind: 'found'; readonly verdict: FoundVerdict }
  | { readonly kind: 'still-unknown' }
  | {
      readonly kind: 'failed'
      readonly why: 'threw' | 'timeout' | 'malformed' | 'no-look-up'
      readonly error: unknown
    }
  /** The row is gone, or the worker is stopping. */
  | { readonly kind: 'dropped' }

export async function askProvider(
  context: ReconcilerContext,
  registered: Registered,
  { lookup, stopping }: { readonly lookup: Lookup; readonly stopping: AbortSignal },
): Promise<ProviderReply> {
  const call = await providerCall(context, registered, lookup)
  if (call === undefined) return { kind: 'dropped' }
  if (call.ask === undefined) {
    const message = `${registered.operation}: no effect is open and no lookupOutcome is registered`
    return { kind: 'failed', why: 'no-look-up', error: new LatchkeyError('misconfigured', message) }
  }
  const answer = await bounded(context, { ...call, ask: call.ask, timeoutMs: registered.timeoutMs, stopping })
  if (answer.kind !== 'answered') return answer
  try {
    const { outcomeVersion } = context.retentionOf(registered.operation)
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

interface ProviderCall {
  readonly ask: Registered['lookup'] | undefined
  readonly question: object
}

async function providerCall(
  { store, call, telemetry }: ReconcilerContext,
  { kind, lookup: askEffect, lookupOutcome }: Registered,
  lookup: Lookup,
): Promise<ProviderCall | undefined> {
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
    telemetry.report('no look-up for a row whose journal cannot be read', {
      operation,
      identity: id,
      detail: journal.why,
    })
    return undefined
  }
  const phased = { ...basic, input: fromJson(journal.work.input), version: journal.work.version }
  if (effect === undefined) return { ask: lookupOutcome, question: phased }
  const { name, epoch } = effect
  const key = downstreamKey(identity.id, name, 'uuid', epoch)
  return { ask: askEffect, question: { ...phased, effect: { name, epoch }, key } }
}

interface BoundedCall extends ProviderCall {
  readonly ask: Registered['lookup']
  readonly timeoutMs: number
  readonly stopping: AbortSignal
}

type BoundedReply =
  | { readonly kind: 'answered'; readonly value: unknown }
  | Extract<ProviderReply, { kind: 'failed' | 'dropped' }>

/** A function that ignores its signal is abandoned; its later answer is discarded. */
async function bounded(
  { clock }: ReconcilerContext,
  { ask, question, timeoutMs, stopping }: BoundedCall,
): Promise<BoundedReply> {
  const deadline = new AbortController()
  const overdue = new LatchkeyError('outcome-unknown', `no verdict within ${timeoutMs} ms`)
  const stop = () => deadline.abort(stopping.reason)
  const late = new Promise<BoundedReply>(resolve => {
    deadline.signal.addEventListener('abort', () => {
      resolve(stopping.aborted ? { kind: 'dropped' } : { kind: 'failed', why: 'timeout', error: overdue })
    })
  })
  stopping.addEventListener('abort', stop, { once: true })
  const cancel = clock.after(timeoutMs, () => deadline.abort(overdue))
  // The question has the type of this operation's kind, which `register` checked.
  const asked = Promise.resolve().then(() => ask({ ...question, signal: deadline.signal } as never))
  try {
    const answered = asked.then((value): BoundedReply => ({ kind: 'answered', value }))
    return await Promise.race([answered, late])
  } catch (error) {
    return { kind: 'failed', why: 'threw', error }
  } finally {
    cancel()
    stopping.removeEventListener('abort', stop)
  }
}
