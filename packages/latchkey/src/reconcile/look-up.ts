/** One look-up that was granted, from the question to what becomes of the row. */
import { unreachable } from '../ports/errors.ts'
import type { FoundVerdict, Lookup } from '../ports/reconciliation.ts'
import { type Asked, askProvider } from './ask-provider.ts'
import { present, type Presented } from './evidence.ts'
import type { Parts } from './host.ts'
import type { Registered } from './registration.ts'

/** The share of a wait that chance may take away: rows that became unknown together are not asked about together. */
const jitter = 0.2

export interface NextLook {
  /** Of look-ups until now. */
  readonly tries: number
  /** A negative verdict came too early: how much of the quarantine is left. */
  readonly quarantineLeftMs: number | undefined
  readonly random: number
}

/** The wait before the next look-up. An early negative is asked again at the quarantine's end at the latest, however many tries there were. */
export function nextLookMs(
  backoffMs: readonly number[],
  { tries, quarantineLeftMs, random }: NextLook,
): number | 'give-up' {
  const planned = backoffMs[tries]
  const waitMs = planned === undefined ? undefined : planned * (1 - jitter * random)
  if (quarantineLeftMs === undefined) return waitMs ?? 'give-up'
  // The millisecond on top: at the end, not a fraction before it.
  return Math.min(waitMs ?? Number.POSITIVE_INFINITY, Math.max(0, quarantineLeftMs) + 1)
}

export interface Looking {
  readonly registered: Registered
  readonly lookup: Lookup
  /** On the monotonic clock, before the look-up was granted: its verdict is no older than this. */
  readonly sinceMs: number
  /** Aborted: nobody waits for the answer any more. */
  readonly stopping: AbortSignal
}

export async function lookUp(parts: Parts, looking: Looking): Promise<void> {
  const { registered, lookup } = looking
  const { telemetry, store, call } = parts
  telemetry.count('reconcile.scheduled', attributesOf(lookup))
  const asked = await askProvider(parts, registered, looking)
  switch (asked.kind) {
    case 'found':
      return settle(parts, looking, asked.verdict)
    case 'still-unknown':
      return lookAgain(parts, looking)
    case 'failed':
      tellFailed(parts, lookup, asked)
      return lookAgain(parts, looking)
    case 'dropped':
      // Due at once, for whoever goes on.
      return void (await call('postpone', () => store.reconciliation.postpone(lookup, 0)))
    default:
      return unreachable(asked)
  }
}

async function settle(parts: Parts, looking: Looking, verdict: FoundVerdict): Promise<void> {
  const { lookup, sinceMs } = looking
  const ageMs = () => parts.clock.monotonicMs() - sinceMs
  const finding = { source: 'look-up', ref: `${lookup.fence}:${lookup.look}`, verdict } as const
  const { operation } = lookup.identity
  const subject = { id: lookup.id, effect: lookup.effect }
  const presented = await present(parts, { operation, subject, finding, ageMs: ageMs(), lookup })
  const next = afterwards(presented)
  if (next === 'unfit') {
    const error = new TypeError(`a verdict that does not fit: ${'outcome' in verdict ? 'an outcome' : 'a value'}`)
    tellFailed(parts, lookup, { kind: 'failed', why: 'malformed', error })
  }
  if (next === 'claim-lost') {
    parts.telemetry.count('reconcile.failed', { ...attributesOf(lookup), detail: 'claim-lost' })
  } else if (next !== 'done') {
    await lookAgain(parts, looking, typeof next === 'number' ? next - ageMs() : undefined)
  }
}

/** A number: what the store has left of the quarantine. */
function afterwards(presented: Presented): number | 'done' | 'unfit' | 'claim-lost' {
  if (presented.kind === 'too-early') return presented.leftMs
  if (presented.kind === 'claim-lost') return 'claim-lost'
  return presented.kind === 'not-applicable' && presented.state === 'unknown' ? 'unfit' : 'done'
}

async function lookAgain(parts: Parts, { registered, lookup }: Looking, quarantineLeftMs?: number): Promise<void> {
  const { store, clock, telemetry, call } = parts
  const { tries } = lookup
  const waitMs = nextLookMs(registered.backoffMs, { tries, quarantineLeftMs, random: clock.random() })
  if (waitMs !== 'give-up') {
    return void (await call('postpone', () => store.reconciliation.postpone(lookup, waitMs)))
  }
  const given = await call('give up', () => store.reconciliation.giveUp(lookup, 'unresolved'))
  if (given === 'claim-lost') return
  const attributes = { ...attributesOf(lookup), detail: 'unresolved' }
  telemetry.count('parked', attributes)
  telemetry.count('reconcile.failed', attributes)
  telemetry.report(
    `nobody could tell in ${tries} look-ups what became of it: the row is parked, and a person has to settle it`,
    attributes,
  )
}

function tellFailed({ telemetry }: Parts, lookup: Lookup, { why, error }: Extract<Asked, { kind: 'failed' }>): void {
  const attributes = { ...attributesOf(lookup), detail: why }
  telemetry.count('reconcile.failed', attributes)
  telemetry.report('a look-up failed, and is asked again', { ...attributes, error })
}

function attributesOf({ identity: { id, operation } }: Lookup): { operation: string; identity: string } {
  return { operation, identity: id }
}
