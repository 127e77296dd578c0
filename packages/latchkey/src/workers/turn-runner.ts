/** Runs turns one after the other: bounded in time and counted; failures are reported, never thrown. */
import { sleep } from '../ports/clock.ts'
import { LatchkeyError } from '../ports/errors.ts'
import type { LoopHealth, LoopOptions, TurnResult } from './loop.ts'

/** Turns that were given up and have not ended yet: each may hold a connection, so at this number no further turn starts. */
const lostTurnsMax = 3

export interface TurnRunner {
  /** Never rejects. */
  next(stopping: () => boolean): Promise<TurnResult | 'failed'>
  /** Ends the wait for the running turn. */
  giveUp(): void
  counts(): Omit<LoopHealth, 'running'>
}

export function turnRunner({ name, turn, turnMsMax = 60_000, clock, telemetry }: LoopOptions): TurnRunner {
  let counts: Omit<LoopHealth, 'running'> = { lastTurnAtMs: undefined, lastError: undefined, turns: 0, failures: 0 }
  let giveUp = (): void => {}
  let underWay = 0

  async function bounded(): Promise<TurnResult> {
    if (underWay >= lostTurnsMax) throw tooLong(`${underWay} turns were given up and have not ended`)
    const over = new AbortController()
    giveUp = () => over.abort()
    underWay += 1
    const ended = () => void (underWay -= 1)
    const work = Promise.resolve().then(() => turn(over.signal))
    work.then(ended, ended)
    let isEnded = false
    const late = sleep(clock, turnMsMax, over.signal).then((): TurnResult => {
      // The race is over: an error, with its stack, would be built in vain at every turn.
      if (isEnded) return 'idle'
      throw tooLong(`no end of the turn within ${turnMsMax} ms`)
    })
    try {
      return await Promise.race([work, late])
    } finally {
      isEnded = true
      over.abort()
    }
  }

  function tooLong(what: string): LatchkeyError {
    return new LatchkeyError('store-unavailable', `${name}: ${what}`)
  }

  const about = { detail: name }

  /** A worker whose turns are not counted any more is stuck, or gone. */
  function tellEnd(failure?: { readonly error: unknown }): void {
    try {
      telemetry.count('worker.turn', about)
      if (failure === undefined) return
      telemetry.count('worker.failure', about)
      telemetry.report(`a turn of the ${name} failed`, { error: failure.error, detail: name })
    } catch {
      // Telemetry itself failed; the loop continues.
    }
  }

  return {
    async next(stopping) {
      try {
        const result = await bounded()
        counts = { ...counts, lastTurnAtMs: clock.nowMs(), lastError: undefined, turns: counts.turns + 1 }
        tellEnd()
        return result
      } catch (error) {
        // A turn that `stop` interrupted has not failed.
        if (stopping()) return 'idle'
        const { turns, failures } = counts
        counts = { lastTurnAtMs: clock.nowMs(), lastError: error, turns: turns + 1, failures: failures + 1 }
        tellEnd({ error })
        return 'failed'
      }
    },
    giveUp: () => giveUp(),
    counts: () => counts,
  }
}
