/**
 * Deadlines of one length, with one timer for all of them. Nearly all are removed before they fall due (a store answers, a handler
 * ends), and setting and clearing a timer for each took about four microseconds of a request.
 */
import type { Clock } from './clock.ts'
import { append, emptyList, type LinkedList, type ListNode, remove } from './linked-list.ts'

/** Whatever waits is its own deadline, so that a request pays for no other object. */
export interface Deadline extends ListNode<Deadline> {
  /** Monotonic; 0 while it is not set. */
  dueAtMs: number
  /** Called once its time has come. It is removed by then. */
  fallDue(): void
}

export class Deadlines {
  private readonly clock: Pick<Clock, 'after' | 'monotonicMs'>
  private readonly delayMs: number
  /** They were appended in the order in which they fall due. */
  private readonly waiting: LinkedList<Deadline> = emptyList()
  private cancelTimer: (() => void) | undefined = undefined
  /** The time that the timer is set for. Its deadline may have been removed since. */
  private armedForMs = 0

  constructor(clock: Pick<Clock, 'after' | 'monotonicMs'>, delayMs: number) {
    this.clock = clock
    this.delayMs = delayMs
  }

  get isEmpty(): boolean {
    return this.waiting.first === undefined
  }

  add(deadline: Deadline): void {
    deadline.dueAtMs = this.clock.monotonicMs() + this.delayMs
    append(this.waiting, deadline)
    if (this.cancelTimer === undefined) this.arm(this.delayMs, deadline.dueAtMs)
  }

  /** The timer is left to run out: the next deadline of this length needs one as well. */
  remove(deadline: Deadline): void {
    if (deadline.dueAtMs === 0) return
    deadline.dueAtMs = 0
    remove(this.waiting, deadline)
  }

  /** Clears the timer. For a length that hardly comes again. */
  stop(): void {
    this.cancelTimer?.()
    this.cancelTimer = undefined
  }

  private arm(delayMs: number, armedForMs: number): void {
    this.armedForMs = armedForMs
    this.cancelTimer = this.clock.after(delayMs, () => this.fire())
  }

  /** A deadline is due by the time that the timer was set for, not by the clock: a timer may fire a fraction of a millisecond early. */
  private fire(): void {
    // What falls due may add deadlines, which set the timer anew.
    const { waiting, armedForMs } = this
    this.cancelTimer = undefined
    for (let due = waiting.first; due !== undefined && due.dueAtMs <= armedForMs; due = waiting.first) {
      this.remove(due)
      runIsolated(due)
    }
    const next = waiting.first
    if (next === undefined || this.cancelTimer !== undefined) return
    this.arm(Math.max(0, next.dueAtMs - this.clock.monotonicMs()), next.dueAtMs)
  }
}

/** For a few lengths that come again and again. */
export class DeadlinesByLength {
  private readonly clock: Clock
  private readonly known = new Map<number, Deadlines>()

  constructor(clock: Clock) {
    this.clock = clock
  }

  of(delayMs: number): Deadlines {
    const known = this.known.get(delayMs)
    if (known !== undefined) return known
    const deadlines = new Deadlines(this.clock, delayMs)
    this.known.set(delayMs, deadlines)
    return deadlines
  }

  /** Clears the timers for which nothing waits. */
  stopIdle(): void {
    for (const deadlines of this.known.values()) if (deadlines.isEmpty) deadlines.stop()
  }
}

/** An error becomes an uncaught one, as from a timer of its own, and does not keep the other deadlines from falling due. */
function runIsolated(deadline: Deadline): void {
  try {
    deadline.fallDue()
  } catch (error) {
    setImmediate(() => {
      throw error
    })
  }
}
