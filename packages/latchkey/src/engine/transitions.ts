/**
 * The life of a row, as data. Stores implement it, the conformance suite and the model check it; nothing else is legal.
 * Only the transitions of atomic and guarded operations and of their operators are here; each capability adds its rows.
 */
import type { State } from '../ports/store.ts'

export type Place = State | 'none'
export type Actor = 'request' | 'owner' | 'late owner' | 'sweeper' | 'operator' | 'reaper'

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
  { from: 'completed', to: 'in_progress', by: ['request'], guard: 'expired', fence: 'rises' },
  { from: 'completed', to: 'completed', by: ['request'], guard: 'atomic: expired', fence: 'rises' },
  {
    from: 'failed_retryable',
    to: 'in_progress',
    by: ['request'],
    guard: 'expired, or same fingerprint and due',
    fence: 'rises',
  },
  {
    from: 'failed_retryable',
    to: 'completed',
    by: ['request'],
    guard: 'atomic: expired, or same fingerprint and due',
    fence: 'rises',
  },
  { from: 'in_progress', to: 'in_progress', by: ['owner'], guard: 'heartbeat: fence and claimId', fence: 'stays' },
  {
    from: 'in_progress',
    to: 'in_progress',
    by: ['request'],
    guard: 'same fingerprint, lease past, recovery rerun',
    fence: 'rises',
  },
  {
    from: 'in_progress',
    to: 'completed',
    by: ['request'],
    guard: 'atomic, over the row of a former guarded operation: same fingerprint, lease past, recovery rerun',
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
    guard: 'fence and claimId, proven that nothing happened',
    fence: 'stays',
  },
  { from: 'in_progress', to: 'failed_retryable', by: ['sweeper'], guard: 'lease past, recovery rerun', fence: 'stays' },
  { from: 'in_progress', to: 'unknown', by: ['owner'], guard: 'fence and claimId', fence: 'stays' },
  {
    from: 'in_progress',
    to: 'unknown',
    by: ['sweeper', 'request'],
    guard: 'lease past, recovery hold',
    fence: 'stays',
  },
  { from: 'unknown', to: 'completed', by: ['late owner', 'operator'], guard: 'evidence', fence: 'stays' },
  { from: 'unknown', to: 'failed_retryable', by: ['late owner', 'operator'], guard: 'evidence', fence: 'stays' },
  { from: 'completed', to: 'none', by: ['reaper'], guard: 'expired', fence: 'stays' },
  { from: 'completed', to: 'none', by: ['operator'], guard: 'forget, audited', fence: 'stays' },
  { from: 'failed_retryable', to: 'none', by: ['reaper'], guard: 'expired', fence: 'stays' },
]

export function isLegal(from: Place, to: Place, by: Actor): boolean {
  return transitions.some(row => row.from === from && row.to === to && row.by.includes(by))
}
