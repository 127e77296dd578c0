/**
 * Many deadlines of one length behind one timer of the runtime. Nearly all of them are cancelled before they are reached (a store
 * answers, a handler ends), and setting and clearing a timer for each took about four microseconds of a request.
 */

import { type Line, type Link, stepIn, stepOut } from './linked-list.ts'

interface Deadline extends Link<Deadline> {
  readonly atMs: number
  readonly run: () => void
  readonly line: Deadlines
  waiting: boolean
}

/** All deadlines of one length, in the order in which they were set, which is the order in which they fall due. */
interface Deadlines extends Line<Deadline> {
  readonly delayMs: number
  timer: NodeJS.Timeout | undefined
  /** What the timer is set for: it may stand for a deadline that was cancelled since. */
  armedForMs: number
  uses: number
}

/** A length that was asked for more often than this comes again: its timer is left to run out. Any other is cleared at once. */
const usesMax = 16

type After = (delayMs: number, run: () => void) => () => void

/** Calls `run` once after `delayMs`; the returned function cancels. Never keeps the process alive by itself. */
export function sharedTimers(monotonicMs: () => number): After {
  const lines = new Map<number, Deadlines>()

  function openLine(delayMs: number): Deadlines {
    const line: Deadlines = {
      first: undefined,
      last: undefined,
      length: 0,
      delayMs,
      timer: undefined,
      armedForMs: 0,
      uses: 0,
    }
    lines.set(delayMs, line)
    return line
  }

  function arm(line: Deadlines, delayMs: number, armedForMs: number): void {
    line.armedForMs = armedForMs
    line.timer = setTimeout(fire, delayMs, line).unref()
  }

  /** Due is what the timer was set for, and not what the clock says: a timer may fire a fraction of a millisecond early. */
  function fire(line: Deadlines): void {
    line.timer = undefined
    for (let due = line.first; due !== undefined && due.atMs <= line.armedForMs; due = line.first) {
      leave(due)
      tell(due.run)
    }
    const { first } = line
    if (first === undefined) close(line)
    else if (line.timer === undefined) arm(line, Math.max(0, first.atMs - monotonicMs()), first.atMs)
  }

  function cancel(deadline: Deadline): void {
    const { line } = deadline
    if (!deadline.waiting) return
    leave(deadline)
    if (line.first === undefined && line.uses <= usesMax) close(line)
  }

  function close(line: Deadlines): void {
    clearTimeout(line.timer)
    line.timer = undefined
    if (lines.get(line.delayMs) === line) lines.delete(line.delayMs)
  }

  return (delayMs, run) => {
    const line = lines.get(delayMs) ?? openLine(delayMs)
    const atMs = monotonicMs() + delayMs
    const deadline: Deadline = { atMs, run, line, before: undefined, next: undefined, waiting: true }
    stepIn(line, deadline)
    line.uses += 1
    if (line.timer === undefined) arm(line, delayMs, atMs)
    return () => cancel(deadline)
  }
}

function leave(deadline: Deadline): void {
  deadline.waiting = false
  stepOut(deadline.line, deadline)
}

/** One that throws is the process's to hear of, as from a timer of its own, and keeps no other from its turn. */
function tell(run: () => void): void {
  try {
    run()
  } catch (error) {
    setImmediate(() => {
      throw error
    })
  }
}
