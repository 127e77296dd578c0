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

/** Drawn for 341 nonces at once. */
const secrets = Buffer.alloc(4_096)
let secretsUsed = secrets.length

/**
 * For keys and nonces. Not of `Clock`: under a source that a test has replaced, nonces would repeat, and the cipher would be broken. At most
 * 4,096 bytes.
 */
export function secretBytes(length: number): Buffer {
  if (secretsUsed + length > secrets.length) {
    randomFillSync(secrets)
    secretsUsed = 0
  }
  const drawn = secrets.subarray(secretsUsed, secretsUsed + length)
  const bytes = Buffer.from(drawn)
  // A key must not stand in two places.
  drawn.fill(0)
  secretsUsed += length
  return bytes
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

export interface EndOptions {
  readonly clock: Clock
  readonly delayMs: number
  readonly signal: AbortSignal
}

/** Resolves when one of `works` has ended, after `delayMs`, or when the signal aborts. */
export async function anyEnd(works: Iterable<Promise<void>>, { clock, delayMs, signal }: EndOptions): Promise<void> {
  const over = new AbortController()
  const end = () => over.abort()
  signal.addEventListener('abort', end, { once: true })
  await Promise.race([...works, sleep(clock, delayMs, over.signal)])
  signal.removeEventListener('abort', end)
  end()
}

/** Of something that has to be done at the end of this turn of the event loop. */
export interface TurnEnd {
  /** Never throws. */
  endOfTurn(): void
}

// Taken when the module is loaded: a test of the application that replaces the timers still gets its answers.
const { setImmediate: runtimeTurnEnd } = globalThis
let endings: TurnEnd[] = []

/** All that is to be done at the end of a turn is done together, in the order of arrival. */
export function atEndOfTurn(one: TurnEnd): void {
  if (endings.push(one) === 1) runtimeTurnEnd(endTurn)
}

function endTurn(): void {
  const due = endings
  endings = []
  for (const one of due) one.endOfTurn()
}

/** Whatever waits is its own deadline, so that a request pays for no other object. */
export interface Deadline extends ListNode<Deadline> {
  /** Monotonic; 0 while it is not set. */
  dueAtMs: number
  /** Called once its time has come. It is removed by then. */
  fallDue(): void
}

/**
 * Deadlines of one length, with one timer for all of them. Nearly all are removed before they fall due (a store answers, a handler
 * ends), and setting and clearing a timer for each took about four microseconds of a request.
 */
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

/** A length that was asked for more often than this comes again: its timer is left to run out. Any other is cleared at once. */
const usesMax = 16

interface SameDelay {
  readonly deadlines: Deadlines
  uses: number
}

/** As `Clock.after`, with one timer of the runtime for all deadlines of one length. */
export function sharedTimers(now: () => number): Clock['after'] {
  const runtime = { after: runtimeTimer, monotonicMs: now }
  const groups = new Map<number, SameDelay>()

  function open(delayMs: number): SameDelay {
    const group = { deadlines: new Deadlines(runtime, delayMs), uses: 0 }
    groups.set(delayMs, group)
    return group
  }

  function leave(delayMs: number, { deadlines, uses }: SameDelay): void {
    if (!deadlines.isEmpty || uses > usesMax) return
    deadlines.stop()
    groups.delete(delayMs)
  }

  return (delayMs, run) => {
    const group = groups.get(delayMs) ?? open(delayMs)
    const fallDue = () => {
      if (group.deadlines.isEmpty) groups.delete(delayMs)
      run()
    }
    const deadline: Deadline = { dueAtMs: 0, fallDue, before: undefined, next: undefined }
    group.uses += 1
    group.deadlines.add(deadline)
    return () => {
      if (deadline.dueAtMs === 0) return
      group.deadlines.remove(deadline)
      leave(delayMs, group)
    }
  }
}

function runtimeTimer(delayMs: number, run: () => void): () => void {
  const timer = setTimeout(run, delayMs).unref()
  return () => clearTimeout(timer)
}
