/** Waits that end when the call is interrupted. */
import { setTimeout as sleep } from 'node:timers/promises'

/** Keeps the program alive. */
export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  await sleep(ms, undefined, signal === undefined ? {} : { signal }).catch(() => undefined)
}

/** Resolves when a person presses Ctrl-C, or another program asks this one to end. */
export async function interrupted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return
  await new Promise<void>(resolve => signal.addEventListener('abort', () => resolve(), { once: true }))
}
