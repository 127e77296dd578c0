/** How long a delivery waits before it comes again. */
import type { Clock } from '../ports/clock.ts'

export interface Backoff {
  readonly backoffMs: number
  readonly backoffMsMax: number
}

/** Of a delivery that found another one at work: often enough to end soon after it, rarely enough to cost nothing. */
const waitMsMax = 30_000

/** After the n-th attempt: the first, doubled with each, up to the longest. */
export function backoffAfter(
  clock: Pick<Clock, 'random'>,
  attempt: number,
  { backoffMs, backoffMsMax }: Backoff,
): number {
  const doublings = Math.min(Math.max(attempt, 1) - 1, 30)
  return jittered(clock, Math.min(backoffMs * 2 ** doublings, backoffMsMax))
}

/** What the engine suggests, or the first backoff where it knows nothing. `besideAnother`: another delivery is at work. */
export function waitFor(
  clock: Pick<Clock, 'random'>,
  { afterMs, besideAnother }: { readonly afterMs: number; readonly besideAnother: boolean },
  { backoffMs, backoffMsMax }: Backoff,
): number {
  const longestMs = besideAnother ? Math.min(waitMsMax, backoffMsMax) : backoffMsMax
  return jittered(clock, Math.min(Math.max(afterMs, backoffMs), longestMs))
}

/** Up to a quarter more: deliveries that failed together do not come back together, and none comes too early. */
function jittered({ random }: Pick<Clock, 'random'>, ms: number): number {
  return Math.ceil(ms * (1 + random() / 4))
}
