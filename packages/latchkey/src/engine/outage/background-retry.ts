/** Retries in the background what an outage left behind, until nothing of it is left. */
import { type Clock, sleep } from '../../ports/clock.ts'

export interface BackgroundRetry {
  /** There is something to do. It keeps the process alive for at most `keepAliveMs`. */
  wake(keepAliveMs: number): void
  /** Resolves when nothing is left, or no turn follows any more. Pauses are short from here on, because a shutdown waits. */
  finish(): Promise<void>
}

export interface RetryOptions {
  readonly clock: Clock
  /** One pass, bounded in time. Returns in how many milliseconds the next one is due; undefined: nothing is left. Never rejects. */
  readonly turn: () => Promise<number | undefined>
  /** Aborted: no more turns. */
  readonly closing: AbortSignal
}

/** While a shutdown waits: often enough to use its time, seldom enough for a store that is down. */
const hurriedPauseMs = 100
/** Nothing ends a pause early, so work that is added meanwhile waits for at most this. */
const pauseMsMax = 1_000

export function backgroundRetry({ clock, turn, closing }: RetryOptions): BackgroundRetry {
  let running: Promise<void> | undefined
  let asked = false
  let hurried = false
  let aliveUntilMs = 0
  let pausing = new AbortController()
  closing.addEventListener('abort', () => pausing.abort())

  async function repeat(): Promise<void> {
    while (!closing.aborted) {
      asked = false
      const dueInMs = await turn()
      if (dueInMs !== undefined && dueInMs > 0) await pause(Math.min(dueInMs, hurried ? hurriedPauseMs : pauseMsMax))
      else if (dueInMs === undefined && !asked) break
    }
    running = undefined
  }

  function pause(pauseMs: number): Promise<void> {
    if (closing.aborted) return Promise.resolve()
    pausing = new AbortController()
    const { signal } = pausing
    if (hurried || clock.monotonicMs() < aliveUntilMs) return sleep(clock, pauseMs, signal)
    return new Promise(resolve => {
      const cancel = clock.after(pauseMs, resolve)
      signal.addEventListener('abort', () => {
        cancel()
        resolve()
      })
    })
  }

  return {
    wake(keepAliveMs) {
      asked = true
      aliveUntilMs = Math.max(aliveUntilMs, clock.monotonicMs() + keepAliveMs)
      if (!closing.aborted) running ??= repeat()
    },
    async finish() {
      hurried = true
      pausing.abort()
      await running
    },
  }
}
