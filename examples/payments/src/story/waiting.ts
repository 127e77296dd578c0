/** Waits for a condition, and fails with its name. */
import { setTimeout as delay } from 'node:timers/promises'

const pauseMs = 50
/** Generous: a busy machine is slow now and then. */
const limitMsDefault = 30_000

export async function until(
  what: string,
  holds: () => Promise<boolean> | boolean,
  limitMs = limitMsDefault,
): Promise<void> {
  const endMs = performance.now() + limitMs
  while (!(await holds())) {
    if (performance.now() > endMs) throw new Error(`not true after ${limitMs / 1_000} s: ${what}`)
    await delay(pauseMs)
  }
}
