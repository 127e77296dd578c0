/** Every call to the store is bounded in time, counted, and reported to the circuit breaker. A write that must not be lost is retried. */
import { type Clock, type Deadline, type Deadlines, DeadlinesByLength, sleep } from '../../ports/clock.ts'
import { errorText, isLatchkeyError, LatchkeyError } from '../../ports/errors.ts'
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
  /** The same for a call that was made, without a promise of its own: every request comes by twice. Few limits: each has a timer. */
  watch<T>(name: string, asked: Promise<T>, caller: Caller<T>, limitMs?: number): void
}

/** Goes on with the answer to its call. */
export interface Caller<T> {
  answered(value: T): void
  /** With the error that `call` would reject with. */
  unanswered(error: unknown): void
  /** One of the two above threw. */
  threw(error: unknown): void
}

export interface StoreCallOptions {
  readonly storeName: string
  readonly timeoutMs: number
  readonly clock: Clock
  /** Default: of its own. */
  readonly deadlines?: DeadlinesByLength
  readonly telemetry: Telemetry
}

export function storeCalls({ storeName, timeoutMs, clock, telemetry, ...options }: StoreCallOptions): StoreCalls {
  const { deadlines = new DeadlinesByLength(clock) } = options
  const about = { detail: storeName }
  const observeCircuit = (isOpen: boolean) => telemetry.observe('circuit.open', isOpen ? 1 : 0, about)
  const circuit = circuitBreaker(clock, observeCircuit)
  observeCircuit(false)
  const limits = new Map<number, CallLimit>()

  function failure(cause: unknown, name: string): unknown {
    // Not migrated, not a transaction: the store answered, and the message says what to do. Overloaded: the store was not asked,
    // so this says nothing about it.
    if (isLatchkeyError(cause) && cause.code !== 'store-unavailable') return cause
    circuit.failed(cause)
    telemetry.count('store.error', { detail: name })
    telemetry.report(`the ${storeName} store failed at ${name}: check its server and its connection settings`, {
      error: cause,
      detail: name,
    })
    const message = `the ${storeName} store failed at ${name}: ${errorText(cause)}`
    return new LatchkeyError('store-unavailable', message, {
      cause,
      sent: isLatchkeyError(cause) ? cause.sent : undefined,
    })
  }

  function answered(name: string): void {
    faultPoint(name, 'after')
    circuit.succeeded()
  }

  function limitOf(limitMs: number): CallLimit {
    const known = limits.get(limitMs)
    if (known !== undefined) return known
    const limit = { limitMs, deadlines: deadlines.of(limitMs), answered, failure }
    limits.set(limitMs, limit)
    return limit
  }

  return {
    circuit,
    timeoutMs,
    call(name, run, limitMs = timeoutMs) {
      const asked = within(clock, limitMs, () => {
        faultPoint(name, 'before')
        return run()
      })
      return asked
        .then(value => {
          answered(name)
          return value
        })
        .catch((cause: unknown) => {
          throw failure(cause, name)
        })
    },
    watch(name, asked, caller, limitMs = timeoutMs) {
      const call = new StoreCall(name, caller, limitOf(limitMs))
      asked.then(
        value => call.succeed(value),
        (cause: unknown) => call.fail(cause),
      )
    },
  }
}

/** What all calls with one limit share. */
interface CallLimit {
  readonly limitMs: number
  readonly deadlines: Deadlines
  /** Called before the value is given out. What it throws is a failure of the call. */
  answered(name: string): void
  /** The error of the call. */
  failure(cause: unknown, name: string): unknown
}

/** A class, and its own deadline: every request makes two of them. */
class StoreCall<T> implements Deadline {
  before: Deadline | undefined = undefined
  next: Deadline | undefined = undefined
  dueAtMs = 0
  private isOver = false
  private readonly name: string
  private readonly caller: Caller<T>
  private readonly limit: CallLimit

  constructor(name: string, caller: Caller<T>, limit: CallLimit) {
    this.name = name
    this.caller = caller
    this.limit = limit
    limit.deadlines.add(this)
  }

  fallDue(): void {
    this.fail(new LatchkeyError('store-unavailable', `no answer within ${this.limit.limitMs} ms`))
  }

  succeed(value: T): void {
    const { limit, caller, name } = this
    // A late answer: the caller finds out by itself what the call has done.
    if (this.isOver) return
    try {
      limit.answered(name)
    } catch (error) {
      return this.fail(error)
    }
    this.end()
    try {
      caller.answered(value)
    } catch (error) {
      caller.threw(error)
    }
  }

  fail(cause: unknown): void {
    const { limit, caller, name } = this
    if (this.isOver) return
    this.end()
    try {
      caller.unanswered(limit.failure(cause, name))
    } catch (error) {
      caller.threw(error)
    }
  }

  private end(): void {
    this.isOver = true
    this.limit.deadlines.remove(this)
  }
}

/** The promise, or a rejection after `limitMs`. A later result is ignored; the caller resolves what the call may have done. */
export function within<T>(clock: Clock, limitMs: number, run: () => Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const late = () => reject(new LatchkeyError('store-unavailable', `no answer within ${limitMs} ms`))
    const cancel = clock.after(limitMs, late)
    const asked = new Promise<T>(settle => settle(run()))
    asked.then(resolve, reject).finally(cancel)
  })
}

/** A caller waits meanwhile: after this it is answered, and the write is left to the background. */
export const storedWithinMs = 5_000
const firstPauseMs = 50

/**
 * Tries a write that must not be lost until it succeeds, for a few seconds, and as long as the claim behind it has time left. Rejects with the
 * last error.
 */
export function untilStored<T>(clock: Clock, write: Write<T>, claimLeftMs?: () => number): Promise<T> {
  const sinceMs = clock.monotonicMs()
  return write(storedWithinMs).catch((cause: unknown) =>
    retryUntilStored(clock, { write, cause, sinceMs, claimLeftMs }),
  )
}

/** It gets what is left of the time. */
type Write<T> = (limitMs: number) => Promise<T>

interface FailedWrite<T> {
  readonly write: Write<T>
  /** What the first attempt failed with. */
  readonly cause: unknown
  readonly sinceMs: number
  readonly claimLeftMs?: (() => number) | undefined
}

export async function retryUntilStored<T>(
  clock: Clock,
  { write, cause: first, sinceMs, claimLeftMs }: FailedWrite<T>,
): Promise<T> {
  const untilMs = sinceMs + storedWithinMs
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

/** `changed`: called when it opens and when it closes. */
export function circuitBreaker(clock: Clock, changed: (isOpen: boolean) => void = () => {}): CircuitBreaker {
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
      if (failures >= failuresMax) changed(false)
      failures = 0
      lastCause = undefined
    },
    failed(cause) {
      // A batch that is lost fails each of its members with the same error.
      if (cause !== undefined && cause === lastCause) return
      lastCause = cause
      failures += 1
      if (failures === failuresMax) changed(true)
      if (failures >= failuresMax) nextProbeAtMs = clock.monotonicMs() + probeEveryMs
    },
  }
}
