/** A pause that keeps the program alive, and ends early when the call is interrupted. */
import { setTimeout as sleep } from 'node:timers/promises'

export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  await sleep(ms, undefined, signal === undefined ? {} : { signal }).catch(() => undefined)
}
