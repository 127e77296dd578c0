/** One transaction at a time: the others wait for their turn, in the order in which they came. */
import type { Clock } from '../../../ports/clock.ts'
import { LatchkeyError } from '../../../ports/errors.ts'

/** More than a process can work off while one of them waits. */
const waitersMax = 10_000

export interface TurnQueue {
  /** Waits for the turn, at most `limitMs`. The function it gives ends the turn; calling it again does nothing. */
  enter(limitMs: number): Promise<() => void>
}

interface Waiter {
  readonly start: (end: () => void) => void
  readonly cancel: () => void
}

export function turnQueue(clock: Clock): TurnQueue {
  const waiting = new Set<Waiter>()
  let taken = false
  const turn = () => {
    let over = false
    return () => {
      if (over) return
      over = true
      const [next] = waiting
      if (next === undefined) return void (taken = false)
      waiting.delete(next)
      next.cancel()
      next.start(turn())
    }
  }
  const wait = (limitMs: number) =>
    new Promise<() => void>((start, reject) => {
      const refuse = () => {
        waiting.delete(waiter)
        reject(overloaded(waitedTooLong(limitMs)))
      }
      const waiter: Waiter = { start, cancel: clock.after(limitMs, refuse) }
      waiting.add(waiter)
    })
  return {
    async enter(limitMs) {
      if (waiting.size >= waitersMax) throw overloaded(`${waitersMax} transactions wait for the memory store already`)
      if (taken) return wait(limitMs)
      taken = true
      return turn()
    },
  }
}

function overloaded(message: string): LatchkeyError {
  return new LatchkeyError('overloaded', message, { retryAfterMs: 1_000 })
}

function waitedTooLong(limitMs: number): string {
  return (
    `nothing was written: after ${limitMs} ms another transaction of the memory store was still open. ` +
    'An atomic handler must not wait for other atomic or phased operations on the same store'
  )
}
