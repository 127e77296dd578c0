/** Every call to the store is bounded in time, counted, and reported to the circuit breaker. A write that must not be lost is retried. */
import { type Clock, sleep } from '../../ports/clock.ts'
import { isLatchkeyError, LatchkeyError } from '../../ports/errors.ts'
import { faultPoint, type Telemetry } from '../../ports/telemetry.ts'

export interface StoreCalls {
  readonly circuit: CircuitBreaker
  /** The limit of a call that is given none. */
  readonly timeoutMs: number
  /**
   * Rejects with `store-unavailable` when the call failed or took too long; what the call did is then unknown, unless the error says that it
   * was never sent. Rejects with `overloaded` when the store refused to queue it, which does not count as a failure.
   */
  call<T>(name: string, run: () => Promise<T>, limitMs?: number): Promise<T>
  /**
   * The same for a call that was made, resolved with what `instead` makes of an error: two promises less, where every request comes by.
   */
  answerTo<T, U>(name: string, asked: Promise<T>, instead: (error: unknown) => U | Promise<U>): Promise<T | U>
}

export interface StoreCallOptions {
  readonly storeName: string
  readonly timeoutMs: number
  readonly clock: Clock
  readonly telemetry: Telemetry
}

export function storeCalls({ storeName, timeoutMs, clock, telemetry }: StoreCallOptions): StoreCalls {
  const circuit = circuitBreaker(clock)

  function failure(cause: unknown, name: string): unknown {
    // Not migrated, not a transaction: the store answered, and the message says what to do. Overloaded: the store was not asked,
    // so this says nothing about it.
    if (isLatchkeyError(cause) && cause.code !== 'store-unavailable') return cause
    circuit.failed(cause)
    telemetry.count('store.error', { detail: name })
    telemetry.report(`the ${storeName} store failed at ${name}`, { error: cause, detail: name })
    const message = `the ${storeName} store failed at ${name}: ${String(cause)}`
    return new LatchkeyError('store-unavailable', message, {
      cause,
      sent: isLatchkeyError(cause) ? cause.sent : undefined,
    })
  }

  function answered(name: string): void {
    faultPoint(name, 'after')
    circuit.succeeded()
  }

  return {
    circuit,
    timeoutMs,
    call(name, run, limitMs = timeoutMs) {
      try {
        faultPoint(name, 'before')
        return bounded(clock, limitMs, { asked: run(), name, answered, failure, instead: rethrow })
      } catch (error) {
        // A port that throws instead of rejecting.
        return Promise.reject(failure(error, name))
      }
    },
    answerTo: (name, asked, instead) => bounded(clock, timeoutMs, { asked, name, answered, failure, instead }),
  }
}

function rethrow(error: unknown): never {
  throw error
}

/** The promise, or a rejection after `limitMs`. A later result is ignored; the caller resolves what the call may have done. */
export function within<T>(clock: Clock, limitMs: number, run: () => Promise<T>): Promise<T> {
  try {
    return bounded(clock, limitMs, {
      asked: run(),
      name: '',
      answered() {},
      failure: cause => cause,
      instead: rethrow,
    })
  } catch (error) {
    return Promise.reject(error)
  }
}

interface BoundedCall<T, U> {
  readonly asked: Promise<T>
  readonly name: string
  /** Called before the value is given out. What it throws is a failure of the call. */
  answered(name: string): void
  /** The error of the call. */
  failure(cause: unknown, name: string): unknown
  /** What the caller gets for it. */
  instead(error: unknown): U | Promise<U>
}

/** One promise around the store's own, because every request makes two such calls. */
function bounded<T, U>(clock: Clock, limitMs: number, call: BoundedCall<T, U>): Promise<T | U> {
  return new Promise((resolve, reject) => {
    let over = false
    const fail = (cause: unknown) => {
      if (over) return
      over = true
      cancel()
      try {
        resolve(call.instead(call.failure(cause, call.name)))
      } catch (error) {
        reject(error)
      }
    }
    const cancel = clock.after(limitMs, () =>
      fail(new LatchkeyError('store-unavailable', `no answer within ${limitMs} ms`)),
    )
    const succeed = (value: T) => {
      if (over) return
      try {
        call.answered(call.name)
      } catch (error) {
        return fail(error)
      }
      over = true
      cancel()
      resolve(value)
    }
    Promise.resolve(call.asked).then(succeed, fail)
  })
}

/** A caller waits meanwhile: after this it is answered, and the write is left to the background. */
const storedWithinMs = 5_000
const firstPauseMs = 50

/**
 * Tries a write that must not be lost until it succeeds, for a few seconds, and as long as the claim behind it has time left. Rejects with the
 * last error. `write` gets what is left of the time.
 */
export function untilStored<T>(
  clock: Clock,
  write: (limitMs: number) => Promise<T>,
  claimLeftMs?: () => number,
): Promise<T> {
  const untilMs = clock.monotonicMs() + storedWithinMs
  return write(storedWithinMs).catch(async (first: unknown) => {
    let cause = first
    for (let pauseMs = firstPauseMs; ; pauseMs *= 2) {
      const isOver = clock.monotonicMs() + pauseMs > untilMs || (claimLeftMs !== undefined && claimLeftMs() < pauseMs)
      if (isOver) throw cause
      await sleep(clock, pauseMs)
      try {
        return await write(untilMs - clock.monotonicMs())
      } catch (error) {
        cause = error
      }
    }
  })
}

/** Stops calling a store that is down: callers are answered at once, and its recovery is not met by a crowd. */
export interface CircuitBreaker {
  /** Closed, or open and this call is the probe. */
  admits(): boolean
  succeeded(): void
  /** `cause`: what all the calls that failed together have in common. It counts once. */
  failed(cause?: unknown): void
}

/** Five in a row: one lost connection fails a handful of calls at once and should not open the circuit. */
const failuresMax = 5
/** One probe a second finds a recovered store quickly and costs it nothing. */
const probeEveryMs = 1_000

export function circuitBreaker(clock: Clock): CircuitBreaker {
  let failures = 0
  let nextProbeAtMs = 0
  let lastCause: unknown
  return {
    admits() {
      if (failures < failuresMax) return true
      if (clock.monotonicMs() < nextProbeAtMs) return false
      nextProbeAtMs = clock.monotonicMs() + probeEveryMs
      return true
    },
    succeeded() {
      failures = 0
      lastCause = undefined
    },
    failed(cause) {
      // A batch that is lost fails each of its members with the same error.
      if (cause !== undefined && cause === lastCause) return
      lastCause = cause
      failures += 1
      if (failures >= failuresMax) nextProbeAtMs = clock.monotonicMs() + probeEveryMs
    },
  }
}
