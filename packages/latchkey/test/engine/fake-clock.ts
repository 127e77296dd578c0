/** Clocks for tests: one that stands still until told, and one that can leap. */
import { type Clock, systemClock } from '../../src/ports/clock.ts'

export interface FakeClock extends Clock {
  /** Runs every timer that falls due on the way, in order. */
  advance(spanMs: number): void
  readonly timers: () => number
}

export function fakeClock(): FakeClock {
  let nowMs = 1_000
  let ids = 0
  let timers: { atMs: number; run: () => void }[] = []
  return {
    nowMs: () => nowMs,
    monotonicMs: () => nowMs,
    after(delayMs, run) {
      const timer = { atMs: nowMs + delayMs, run }
      timers.push(timer)
      return () => {
        timers = timers.filter(other => other !== timer)
      }
    },
    random: () => 0.5,
    randomId: () => `00000000-0000-4000-8000-${String((ids += 1)).padStart(12, '0')}`,
    advance(spanMs) {
      const endMs = nowMs + spanMs
      for (let next = firstDue(); next !== undefined; next = firstDue()) {
        const due = next
        timers = timers.filter(other => other !== due)
        nowMs = Math.max(nowMs, due.atMs)
        due.run()
      }
      nowMs = endMs

      function firstDue() {
        return timers.filter(timer => timer.atMs <= endMs).sort((left, right) => left.atMs - right.atMs)[0]
      }
    },
    timers: () => timers.length,
  }
}

/** The system's clock, which a test may set forward: for a store whose leases and retentions run out on demand. */
export function leapingClock(): Clock & { leap(spanMs: number): void } {
  let aheadMs = 0
  return {
    ...systemClock,
    nowMs: () => systemClock.nowMs() + aheadMs,
    monotonicMs: () => systemClock.monotonicMs() + aheadMs,
    leap(spanMs) {
      aheadMs += spanMs
    },
  }
}

/** The system's clock, with a count of the timers that were neither cancelled nor run. */
export function countingClock(): Clock & { live(): number } {
  const live = new Set<symbol>()
  return {
    ...systemClock,
    after(delayMs, run) {
      const timer = Symbol('timer')
      live.add(timer)
      const cancel = systemClock.after(delayMs, () => {
        live.delete(timer)
        run()
      })
      return () => {
        live.delete(timer)
        cancel()
      }
    },
    live: () => live.size,
  }
}
