/**
 * Time, timers, randomness and ids. The only file that touches the runtime's clock and random source, so that a test can
 * replace both. Leases are never decided by it: they are decided by the store's clock.
 */
import { randomFillSync } from 'node:crypto'
import { append, emptyList, type LinkedList, type ListNode, remove } from './linked-list.ts'

export interface Clock {
  /** Wall time. For dates shown to people only. */
  nowMs(): number
  /** Monotonic time. For local deadlines: it does not jump when the wall clock is set. */
  monotonicMs(): number
  /** Calls `run` once after `delayMs`; the returned function cancels. Never keeps the process alive by itself. */
  after(delayMs: number, run: () => void): () => void
  /** A number in [0, 1), for jitter. */
  random(): number
  /** 128 random bits in UUID shape, for claim ids. */
  randomId(): string
}

/** Node fires a longer timer at once; 24 days are as good as never here. */
const timerMsMax = 2 ** 31 - 1

const monotonicMs = () => performance.now()
const after = sharedTimers(monotonicMs)

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs,
  after: (delayMs, run) => after(Math.min(delayMs, timerMsMax), run),
  random: () => Math.random(),
  randomId,
}

/** Drawn for 256 ids at once: a draw costs the same for 16 bytes and for 4096, more than the rest of a claim. */
const drawn = Buffer.alloc(4_096)
let drawnUsed = drawn.length

function randomId(): string {
  if (drawnUsed === drawn.length) {
    randomFillSync(drawn)
    drawnUsed = 0
  }
  drawnUsed += 16
  return uuidOfHex(drawn.toString('hex', drawnUsed - 16, drawnUsed))
}

/** Sixteen bytes in the 8-4-4-4-12 spelling that every store accepts as a uuid. */
export function uuidText(bytes: Uint8Array): string {
  return uuidOfHex(Buffer.from(bytes.buffer, bytes.byteOffset, 16).toString('hex'))
}

/** The first 32 hexadecimal digits in that spelling. */
export function uuidOfHex(hex: string): string {
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20, 32)}`
}

/**
 * Waits, and keeps the process alive: an open request depends on it. Ends early, without an error, when the signal
 * aborts; the caller checks the signal.
 */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    if (signal?.aborted) return resolve()
    const keepAlive = setInterval(() => {}, 2 ** 30)
    const finish = () => {
      clearInterval(keepAlive)
      cancel()
      signal?.removeEventListener('abort', finish)
      resolve()
    }
    const cancel = clock.after(delayMs, finish)
    signal?.addEventListener('abort', finish, { once: true })
  })
}

interface Deadline extends ListNode<Deadline> {
  readonly atMs: number
  readonly run: () => void
  readonly group: SameDelay
  isSet: boolean
}

/** All deadlines of one length. They were appended in the order in which they fall due. */
interface SameDelay {
  readonly delayMs: number
  readonly deadlines: LinkedList<Deadline>
  timer: NodeJS.Timeout | undefined
  /** The time that the timer is set for. Its deadline may have been cancelled since. */
  armedForMs: number
  uses: number
}

/** A length that was asked for more often than this comes again: its timer is left to run out. Any other is cleared at once. */
const usesMax = 16

/**
 * As `Clock.after`, with one timer of the runtime for all deadlines of one length. Nearly all of them are cancelled before they fall due (a
 * store answers, a handler ends), and setting and clearing a timer for each took about four microseconds of a request.
 */
export function sharedTimers(monotonicMs: () => number): Clock['after'] {
  const groups = new Map<number, SameDelay>()

  function open(delayMs: number): SameDelay {
    const group: SameDelay = { delayMs, deadlines: emptyList(), timer: undefined, armedForMs: 0, uses: 0 }
    groups.set(delayMs, group)
    return group
  }

  function close(group: SameDelay): void {
    clearTimeout(group.timer)
    group.timer = undefined
    if (groups.get(group.delayMs) === group) groups.delete(group.delayMs)
  }

  function arm(group: SameDelay, delayMs: number, armedForMs: number): void {
    group.armedForMs = armedForMs
    group.timer = setTimeout(fire, delayMs, group).unref()
  }

  /** A deadline is due by the time that the timer was set for, not by the clock: a timer may fire a fraction of a millisecond early. */
  function fire(group: SameDelay): void {
    // What runs may set deadlines of the same length, which set the timer anew.
    const { deadlines, armedForMs } = group
    group.timer = undefined
    for (let due = deadlines.first; due !== undefined && due.atMs <= armedForMs; due = deadlines.first) {
      unset(due)
      runIsolated(due.run)
    }
    if (deadlines.first === undefined) close(group)
    else if (group.timer === undefined) {
      arm(group, Math.max(0, deadlines.first.atMs - monotonicMs()), deadlines.first.atMs)
    }
  }

  function cancel(deadline: Deadline): void {
    const { group } = deadline
    if (!deadline.isSet) return
    unset(deadline)
    if (group.deadlines.first === undefined && group.uses <= usesMax) close(group)
  }

  return (delayMs, run) => {
    const group = groups.get(delayMs) ?? open(delayMs)
    const atMs = monotonicMs() + delayMs
    const deadline: Deadline = { atMs, run, group, before: undefined, next: undefined, isSet: true }
    append(group.deadlines, deadline)
    group.uses += 1
    if (group.timer === undefined) arm(group, delayMs, atMs)
    return () => cancel(deadline)
  }
}

function unset(deadline: Deadline): void {
  deadline.isSet = false
  remove(deadline.group.deadlines, deadline)
}

/** An error becomes an uncaught one, as from a timer of its own, and does not keep the other deadlines from running. */
function runIsolated(run: () => void): void {
  try {
    run()
  } catch (error) {
    setImmediate(() => {
      throw error
    })
  }
}
