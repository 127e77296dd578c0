/**
 * A claim and a completion that are alone: a statement for one row of the plainest kind each, written or not. A function would hold the lock
 * timeout and the plan's settings as those of the batches do, and cost more than the row.
 */
import { systemClock } from '../../../ports/clock.ts'
import type { Ask } from '../connection/statement.ts'

/** True if the statement wrote its row. */
export async function writes(ask: Ask, text: string, values: readonly unknown[]): Promise<boolean> {
  return (await ask(text, values)).rowCount === 1
}

/** As the lock timeout of a batch: who is in its way keeps the one, and not those that come after. */
const laneHeldMs = 50

/** Resolves when the answer is there, and at the latest when the lane has to go on without it. */
export function untilLaneIsFree(answer: Promise<unknown>): Promise<void> {
  return new Promise(resolve => {
    const cancel = systemClock.after(laneHeldMs, resolve)
    const free = () => {
      cancel()
      resolve()
    }
    answer.then(free, free)
  })
}
