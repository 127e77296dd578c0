/** Every call to the store goes through here: bounded in time, counted, and told to the circuit. */
import type { Clock } from '../ports/clock.ts'
import { isLatchkeyError, LatchkeyError } from '../ports/errors.ts'
import type { Telemetry } from '../ports/telemetry.ts'
import { type Circuit, circuit } from './circuit.ts'
import { faultPoint } from './fault-point.ts'

export interface StoreCalls {
  readonly circuit: Circuit
  /** The limit of a call that is given none. */
  readonly timeoutMs: number
  /** Rejects with `store-unavailable` when the call failed or took too long; what the call did is then unknown. */
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
  return {
    circuit: breaker,
    timeoutMs,
    async call(name, run, limitMs = timeoutMs) {
      try {
        faultPoint(`${name}:before`)
        const value = await within(clock, limitMs, run)
        faultPoint(`${name}:after`)
        breaker.succeeded()
        return value
      } catch (cause) {
        // Not migrated, not a transaction: the store answered, and the message says what to do.
        if (isLatchkeyError(cause) && cause.code !== 'store-unavailable') throw cause
        breaker.failed()
        telemetry.count('store.error', { detail: name })
        telemetry.report(`the ${storeName} store failed at ${name}`, { error: cause, detail: name })
        throw new LatchkeyError('store-unavailable', `the ${storeName} store failed at ${name}: ${String(cause)}`, {
          cause,
        })
      }
    },
  }
}

/** The promise, or a rejection after `limitMs`. What comes later is ignored; the caller resolves what it may have done. */
export function within<T>(clock: Clock, limitMs: number, run: () => Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(limitMs, () =>
      reject(new LatchkeyError('store-unavailable', `no answer within ${limitMs} ms`)),
    )
    // A port that throws instead of rejecting must not leave the timer behind.
    Promise.resolve().then(run).then(resolve, reject).finally(cancel)
  })
}
