/** Every call to the store goes through here: bounded in time, counted, and told to the circuit. */
import type { Clock } from '../../ports/clock.ts'
import { isLatchkeyError, LatchkeyError } from '../../ports/errors.ts'
import type { Telemetry } from '../../ports/telemetry.ts'
import { type Circuit, circuit } from './circuit-breaker.ts'
import { faultPoint } from './fault-point.ts'

export interface StoreCalls {
  readonly circuit: Circuit
  /** The limit of a call that is given none. */
  readonly timeoutMs: number
  /**
   * Rejects with `store-unavailable` when the call failed or took too long; what the call did is then unknown, unless the error says that it
   * was never sent. Rejects with `overloaded` when the store refused to queue it, which counts as no failure.
   */
  call<T>(name: string, run: () => Promise<T>, limitMs?: number): Promise<T>
}

export interface StoreCallOptions {
  readonly storeName: string
  readonly timeoutMs: number
  readonly clock: Clock
  readonly telemetry: Telemetry
}

export function storeCalls({ storeName, timeoutMs, clock, telemetry }: StoreCallOptions): StoreCalls {
  const breaker = circuit(clock)

  function failure(name: string, cause: unknown): unknown {
    // Not migrated, not a transaction: the store answered, and the message says what to do. Overloaded: it was not even asked,
    // which is a word about this process and says nothing about the store.
    if (isLatchkeyError(cause) && cause.code !== 'store-unavailable') return cause
    breaker.failed(cause)
    telemetry.count('store.error', { detail: name })
    telemetry.report(`the ${storeName} store failed at ${name}`, { error: cause, detail: name })
    const message = `the ${storeName} store failed at ${name}: ${String(cause)}`
    return new LatchkeyError('store-unavailable', message, {
      cause,
      sent: isLatchkeyError(cause) ? cause.sent : undefined,
    })
  }

  const watch: Watch = {
    before: name => faultPoint(name, 'before'),
    after(name) {
      faultPoint(name, 'after')
      breaker.succeeded()
    },
    failure,
  }
  return {
    circuit: breaker,
    timeoutMs,
    call: (name, run, limitMs = timeoutMs) => bounded(clock, limitMs, { name, run, watch }),
  }
}

/** The promise, or a rejection after `limitMs`. What comes later is ignored; the caller resolves what it may have done. */
export function within<T>(clock: Clock, limitMs: number, run: () => Promise<T>): Promise<T> {
  return bounded(clock, limitMs, { name: '', run, watch: unwatched })
}

/** What is told of every call, by its name. What `before` or `after` throws is a failure of the call. */
interface Watch {
  before(name: string): void
  /** Before the value is given out. */
  after(name: string): void
  /** What to reject with. */
  failure(name: string, cause: unknown): unknown
}

const unwatched: Watch = { before() {}, after() {}, failure: (_, cause) => cause }

interface Bounded<T> {
  readonly name: string
  readonly run: () => Promise<T>
  readonly watch: Watch
}

/** One promise around the store's own, because two of these are on the way of every request. */
function bounded<T>(clock: Clock, limitMs: number, { name, run, watch }: Bounded<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    let over = false
    const fail = (cause: unknown) => {
      if (over) return
      over = true
      cancel()
      reject(watch.failure(name, cause))
    }
    const cancel = clock.after(limitMs, () =>
      fail(new LatchkeyError('store-unavailable', `no answer within ${limitMs} ms`)),
    )
    const answered = (value: T) => {
      if (over) return
      try {
        watch.after(name)
      } catch (error) {
        return fail(error)
      }
      over = true
      cancel()
      resolve(value)
    }
    try {
      watch.before(name)
      Promise.resolve(run()).then(answered, fail)
    } catch (error) {
      // A port that throws instead of rejecting must not leave the timer behind.
      fail(error)
    }
  })
}
