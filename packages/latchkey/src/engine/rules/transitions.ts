/**
 * The states of a row and the transitions between them, as data. Stores implement them, the conformance suite and the model check them; nothing
 * else is legal. `parked` is a mark beside the state: it stops every grant, look-up and the reaper, and only an operator or evidence removes it.
 */
import type { State } from '../../ports/store.ts'

export type Place = State | 'none'
export type Actor = 'request' | 'resumer' | 'owner' | 'late owner' | 'sweeper' | 'reconciler' | 'operator' | 'reaper'

export interface Transition {
  readonly from: Place
  readonly to: Place
  readonly by: readonly Actor[]
  readonly guard: string
  /** What happens to the fence: a grant raises it by one, everything else leaves it. */
  readonly fence: 'rises' | 'stays'
}

export const transitions: readonly Transition[] = [
  { from: 'none', to: 'in_progress', by: ['request'], guard: 'the insert wins the primary key', fence: 'rises' },
  {
    from: 'none',
    to: 'completed',
    by: ['request'],
    guard: 'atomic: one commit with the business rows',
    fence: 'rises',
  },
  {
    from: 'none',
    to: 'completed',
    by: ['request'],
    guard: 'atomic: the handler committed the transaction itself, and returned; written in a new one',
    fence: 'rises',
  },
  { from: 'none', to: 'pending', by: ['request'], guard: 'deferred: with its input, in one commit', fence: 'rises' },
  { from: 'completed', to: 'pending', by: ['request'], guard: 'deferred: expired, not gone', fence: 'rises' },
  { from: 'failed_retryable', to: 'pending', by: ['request'], guard: 'deferred: expired', fence: 'rises' },
  {
    from: 'pending',
    to: 'in_progress',
    by: ['request', 'resumer'],
    guard: 'same fingerprint, due, not parked',
    fence: 'rises',
  },
  {
    from: 'pending',
    to: 'completed',
    by: ['request'],
    guard: 'atomic, over the row of an operation that was deferred or phased: same fingerprint, due, not parked',
    fence: 'rises',
  },
  { from: 'completed', to: 'in_progress', by: ['request'], guard: 'expired, not gone', fence: 'rises' },
  { from: 'completed', to: 'completed', by: ['request'], guard: 'atomic: expired, not gone', fence: 'rises' },
  { from: 'completed', to: 'completed', by: ['reaper'], guard: 'expired: all but the tombstone goes', fence: 'stays' },
  {
    from: 'failed_retryable',
    to: 'in_progress',
    by: ['request'],
    guard: 'expired, or same fingerprint and due; not parked',
    fence: 'rises',
  },
  {
    from: 'failed_retryable',
    to: 'in_progress',
    by: ['resumer'],
    guard: 'phased: same fingerprint, due, not expired, not parked',
    fence: 'rises',
  },
  {
    from: 'failed_retryable',
    to: 'completed',
    by: ['request'],
    guard: 'atomic: expired, or same fingerprint and due; not parked',
    fence: 'rises',
  },
  { from: 'in_progress', to: 'in_progress', by: ['owner'], guard: 'heartbeat: fence and claimId', fence: 'stays' },
  {
    from: 'in_progress',
    to: 'in_progress',
    by: ['owner'],
    guard: 'phase done, intent opened, result recorded: fence and claimId',
    fence: 'stays',
  },
  {
    from: 'in_progress',
    to: 'in_progress',
    by: ['request'],
    guard: 'same fingerprint, lease past, recovery rerun',
    fence: 'rises',
  },
  {
    from: 'in_progress',
    to: 'in_progress',
    by: ['request', 'resumer'],
    guard: 'same fingerprint, lease past, recovery resume, no open intent that may not be repeated',
    fence: 'rises',
  },
  {
    from: 'in_progress',
    to: 'completed',
    by: ['request'],
    guard:
      'atomic, over the row of an operation that was of another kind: same fingerprint, lease past, and rerun or resume as above',
    fence: 'rises',
  },
  {
    from: 'in_progress',
    to: 'completed',
    by: ['owner'],
    guard: 'fence and claimId, whatever the clock says',
    fence: 'stays',
  },
  {
    from: 'in_progress',
    to: 'failed_retryable',
    by: ['owner'],
    guard: 'fence and claimId, proven that nothing happened; an open intent becomes again',
    fence: 'stays',
  },
  { from: 'in_progress', to: 'failed_retryable', by: ['owner'], guard: 'park: fence and claimId', fence: 'stays' },
  { from: 'in_progress', to: 'failed_retryable', by: ['sweeper'], guard: 'lease past, recovery rerun', fence: 'stays' },
  { from: 'in_progress', to: 'unknown', by: ['owner'], guard: 'fence and claimId', fence: 'stays' },
  {
    from: 'in_progress',
    to: 'unknown',
    by: ['owner'],
    guard: 'atomic: claimed for it, because the handler committed the transaction itself and did not return',
    fence: 'stays',
  },
  {
    from: 'in_progress',
    to: 'unknown',
    by: ['sweeper', 'request'],
    guard: 'lease past, recovery hold, or recovery resume with an open intent that may not be repeated',
    fence: 'stays',
  },
  {
    from: 'unknown',
    to: 'completed',
    by: ['late owner', 'reconciler', 'operator'],
    guard: 'guarded, or phased without an open effect: evidence of an outcome',
    fence: 'stays',
  },
  {
    from: 'unknown',
    to: 'failed_retryable',
    by: ['late owner', 'reconciler', 'operator'],
    guard: 'guarded: evidence that it never happened, the reconciler only after the quarantine',
    fence: 'stays',
  },
  {
    from: 'unknown',
    to: 'pending',
    by: ['late owner', 'reconciler', 'operator'],
    guard:
      'phased: evidence settles the open effect, with its result, or with its epoch raised, the reconciler only after the quarantine',
    fence: 'stays',
  },
  {
    from: 'unknown',
    to: 'unknown',
    by: ['reconciler'],
    guard: 'a look-up granted, postponed or given up (parked): its own lease and number',
    fence: 'stays',
  },
  { from: 'unknown', to: 'unknown', by: ['operator'], guard: 'unpark, audited', fence: 'stays' },
  { from: 'pending', to: 'pending', by: ['operator'], guard: 'unpark, audited', fence: 'stays' },
  { from: 'failed_retryable', to: 'failed_retryable', by: ['operator'], guard: 'unpark, audited', fence: 'stays' },
  { from: 'completed', to: 'none', by: ['reaper'], guard: 'expired, and past its tombstone', fence: 'stays' },
  { from: 'completed', to: 'none', by: ['operator'], guard: 'forget, audited', fence: 'stays' },
  { from: 'failed_retryable', to: 'none', by: ['reaper'], guard: 'expired, not parked', fence: 'stays' },
]

export function isLegal(from: Place, to: Place, by: Actor): boolean {
  return transitions.some(row => row.from === from && row.to === to && row.by.includes(by))
}
