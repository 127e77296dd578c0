/**
 * Time, timers, randomness and ids. The only file that touches the runtime's clock and random source, so that a test can
 * replace both. Leases are never decided by it: they are decided by the store's clock.
 */
import { randomFillSync } from 'node:crypto'
import { type Deadline, Deadlines } from './deadlines.ts'

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
