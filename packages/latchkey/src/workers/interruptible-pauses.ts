/** Pauses that may end early: all of them when the loop ends, an idle one also at a hint. */
import { type Clock, sleep } from '../ports/clock.ts'

/** A storm of hints costs at most one turn in this time. */
const wakeGapMs = 20

export interface InterruptiblePauses {
  pause(spanMs: number): Promise<void>
  /** Ended by a hint, including one that came since `turnBegins`. */
  idle(spanMs: number): Promise<void>
  /** The turn that begins answers all hints so far. */
  turnBegins(): void
  wake(): void
  /** Ends the current pause; later ones end at once, until `begin`. */
  end(): void
  begin(): void
}

export function interruptiblePauses(clock: Clock): InterruptiblePauses {
  let woken = false
  let idling = false
  let turnBeganAtMs = 0
  let ended = false
  let endPause = (): void => {}

  async function pause(spanMs: number): Promise<void> {
    if (ended) return
    const over = new AbortController()
    endPause = () => over.abort()
    await sleep(clock, spanMs, over.signal)
  }

  return {
    pause,
    async idle(spanMs) {
      const beganAtMs = clock.monotonicMs()
      const gapMs = Math.max(0, turnBeganAtMs + wakeGapMs - beganAtMs)
      await pause(Math.min(gapMs, spanMs))
      if (woken) return
      idling = true
      await pause(Math.max(0, beganAtMs + spanMs - clock.monotonicMs()))
      idling = false
    },
    turnBegins() {
      woken = false
      turnBeganAtMs = clock.monotonicMs()
    },
    wake() {
      woken = true
      if (idling) endPause()
    },
    end() {
      ended = true
      endPause()
    },
    begin() {
      ended = false
    },
  }
}
