/** Waiting for what must come, and saying loudly what did not. */
import { setTimeout as delay } from 'node:timers/promises'

const pauseMs = 50
/** Generous: a machine that does other things as well is slow now and then. */
const limitMsDefault = 30_000

export async function until(
  what: string,
  holds: () => Promise<boolean> | boolean,
  limitMs = limitMsDefault,
): Promise<void> {
  const endMs = performance.now() + limitMs
  while (!(await holds())) {
    if (performance.now() > endMs) throw new Error(`after ${limitMs / 1_000} s still not: ${what}`)
    await delay(pauseMs)
  }
}
