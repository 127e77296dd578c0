/** One granted look-up, from the question to its effect on the row. */
import { unreachable } from '../ports/errors.ts'
import type { FoundVerdict, Lookup } from '../ports/reconciliation.ts'
import { askProvider, type ProviderReply } from './ask-provider.ts'
import { present, type PresentResult } from './evidence.ts'
import type { ReconcilerContext } from './host.ts'
import type { Registered } from './registration.ts'

/** The share of a wait that chance may remove, so that rows that became unknown together are not looked up together. */
const jitter = 0.2

export interface NextLookUp {
  /** Look-ups so far. */
  readonly tries: number
  /** A negative verdict came too early: how much of the quarantine is left. */
  readonly quarantineLeftMs: number | undefined
  readonly random: number
}

/** The wait before the next look-up. After an early negative verdict it ends with the quarantine at the latest, even when all tries are used. */
export function nextLookUpMs(
  backoffMs: readonly number[],
  { tries, quarantineLeftMs, random }: NextLookUp,
): number | 'give-up' {
  const planned = backoffMs[tries]
  const waitMs = planned === undefined ? undefined : planned * (1 - jitter * random)
  if (quarantineLeftMs === undefined) return waitMs ?? 'give-up'
  // One millisecond more, so that the quarantine is over.
  return Math.min(waitMs ?? Number.POSITIVE_INFINITY, Math.max(0, quarantineLeftMs) + 1)
}

export interface LookUpTask {
  readonly registered: Registered
  readonly lookup: Lookup
  /** On the monotonic clock, before the look-up was granted: its verdict is no older than this. */
  readonly sinceMs: number
  /** Aborted when the worker stops: the answer is no longer needed. */
  readonly stopping: AbortSignal
}

export async function lookUp(context: ReconcilerContext, task: LookUpTask): Promise<void> {
  const { registered, lookup } = task
  const { telemetry, store, call } = context
  telemetry.count('reconcile.scheduled', attributesOf(lookup))
  const asked = await askProvider(context, registered, task)
  switch (asked.kind) {
    case 'found':
      return settle(context, task, asked.verdict)
    case 'still-unknown':
      return scheduleNext(context, task)
    case 'failed':
      reportFailed(context, lookup, asked)
      return scheduleNext(context, task)
    case 'dropped':
      // Due at once, for the next worker.
      return void (await call('postpone', () => store.reconciliation.postpone(lookup, 0)))
    default:
      return unreachable(asked)
  }
}

async function settle(context: ReconcilerContext, task: LookUpTask, verdict: FoundVerdict): Promise<void> {
  const { lookup, sinceMs } = task
  const ageMs = () => context.clock.monotonicMs() - sinceMs
  const finding = { source: 'look-up', ref: `${lookup.fence}:${lookup.look}`, verdict } as const
  const { operation } = lookup.identity
  const subject = { id: lookup.id, effect: lookup.effect }
  const presented = await present(context, { operation, subject, finding, ageMs, lookup })
  const next = afterwards(presented)
  if (next === 'unfit') {
    const error = new TypeError(`the verdict does not fit the row: ${'outcome' in verdict ? 'an outcome' : 'a value'}`)
    reportFailed(context, lookup, { kind: 'failed', why: 'malformed', error })
  }
  if (next === 'claim-lost') {
    context.telemetry.count('reconcile.failed', { ...attributesOf(lookup), detail: 'claim-lost' })
  } else if (next !== 'done') {
    await scheduleNext(context, task, typeof next === 'number' ? next - ageMs() : undefined)
  }
}

/** A number: the milliseconds that are left of the quarantine. */
function afterwards(presented: PresentResult): number | 'done' | 'unfit' | 'claim-lost' {
  if (presented.kind === 'too-early') return presented.leftMs
  if (presented.kind === 'claim-lost') return 'claim-lost'
  return presented.kind === 'not-applicable' && presented.state === 'unknown' ? 'unfit' : 'done'
}

async function scheduleNext(
  context: ReconcilerContext,
  { registered, lookup }: LookUpTask,
  quarantineLeftMs?: number,
): Promise<void> {
  const { store, clock, telemetry, call } = context
  const { tries } = lookup
  const waitMs = nextLookUpMs(registered.backoffMs, { tries, quarantineLeftMs, random: clock.random() })
  if (waitMs !== 'give-up') {
    return void (await call('postpone', () => store.reconciliation.postpone(lookup, waitMs)))
  }
  const given = await call('give up', () => store.reconciliation.giveUp(lookup, 'unresolved'))
  if (given === 'claim-lost') return
  const attributes = { ...attributesOf(lookup), detail: 'unresolved' }
  telemetry.count('parked', attributes)
  telemetry.count('reconcile.failed', attributes)
  telemetry.report(`still unknown after ${tries} look-ups; the row is parked and needs manual settlement`, attributes)
}

function reportFailed(
  { telemetry }: ReconcilerContext,
  lookup: Lookup,
  { why, error }: Extract<ProviderReply, { kind: 'failed' }>,
): void {
  const attributes = { ...attributesOf(lookup), detail: why }
  telemetry.count('reconcile.failed', attributes)
  telemetry.report('a look-up failed; it will be retried', { ...attributes, error })
}

function attributesOf({ identity: { id, operation } }: Lookup): { operation: string; identity: string } {
  return { operation, identity: id }
}
