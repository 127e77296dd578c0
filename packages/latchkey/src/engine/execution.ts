/** What a handler is given beside its request. */
import { createHash } from 'node:crypto'
import { uuidText } from '../ports/clock.ts'
import { LatchkeyError } from '../ports/errors.ts'
import type { Attempt, ExecuteRequest, Work } from './answer.ts'
import { lengthPrefixed } from './request.ts'
import type { Operation } from './operation.ts'
import type { ReferenceWriter } from './run/references.ts'
import type { Lease } from './run/lease.ts'

export interface Execution {
  /** The row's. Put it into the provider's metadata where there is such a place: a webhook that brings it back finds the row. */
  readonly id: string
  readonly key: string
  readonly scope: string
  readonly operation: string
  /** 1 for the first run, rising with every grant of the row. */
  readonly attempt: number
  readonly fence: number
  /** Aborted when the claim is lost or held for longer than the maximum: stop, the answer may be refused. */
  readonly signal: AbortSignal
  /**
   * The idempotency key for a call to another system's API: the same for every attempt of this identity, also after the row
   * expired or was lost. `uuid` (default) or 43 URL-safe characters.
   */
  downstreamKey(effect: string, shape?: 'uuid' | 'opaque'): string
  /**
   * Call it before answering: nothing was done, so the key is free for a retry, whatever the answer is and whatever `onFailure` says.
   * For an answer such as 429 that comes before the first effect. In an atomic operation it also rolls back.
   */
  notExecuted(): void
  /**
   * A name under which operators find this row: the provider's id of what was made, an order number. At most 200 characters, and ten for a row. It
   * is stored at once, before the row's end; of an atomic operation with its commit. It never throws and never rejects: what could not be stored
   * is reported to `telemetry`.
   */
  reference(text: string): Promise<void>
}

export type GuardedExecution = Execution

export interface AtomicExecution<Tx> extends Execution {
  /** Everything written through it commits together with the key and the answer, or not at all. */
  readonly tx: Tx
}

/** Where an execution remembers that its handler called `notExecuted()`. */
export const saidNotExecuted: unique symbol = Symbol('latchkey: not executed')

/** An execution as the engine sees it. */
export interface Observed {
  [saidNotExecuted]: boolean
}

interface Grant extends Pick<Execution, 'attempt' | 'fence'> {
  /** Asked when the handler first reads `signal`. */
  readonly lease: Pick<Lease, 'signal'>
  readonly references: Pick<ReferenceWriter, 'add'>
}

export function execution(
  { identity, key }: ExecuteRequest,
  { attempt, fence, lease, references }: Grant,
): GuardedExecution & Observed {
  const { id, scope, operation } = identity
  const given = {
    id,
    key,
    scope,
    operation,
    attempt,
    fence,
    downstreamKey: (effect: string, shape?: 'uuid' | 'opaque') => downstreamKey(id, effect, shape),
    notExecuted: () => {
      given[saidNotExecuted] = true
    },
    reference: (text: string) => references.add(text),
    [saidNotExecuted]: false,
    [signalSource]: lease,
  }
  // The one member that is missing is defined here.
  return Object.defineProperty(given, 'signal', lazySignal) as typeof given & { readonly signal: AbortSignal }
}

const signalSource = Symbol('signal')

/** One getter for all executions: a literal with a getter of its own makes a new hidden class each time it is written. */
const lazySignal: PropertyDescriptor & ThisType<{ [signalSource]: Grant['lease'] }> = {
  get() {
    const signal = this[signalSource].signal()
    Object.defineProperty(this, 'signal', { value: signal, enumerable: true })
    return signal
  },
  enumerable: true,
  configurable: true,
}

/** For work without a row. */
export const noReferences: Pick<ReferenceWriter, 'add'> = { add: async () => {} }

/** For work without a claim that could be lost. */
export const neverLost: Grant['lease'] = { signal: () => new AbortController().signal }

/** Calls the handler. Adapters return a throw as a value; one that throws or rejects instead is a throw without an answer. */
export function startWork<X>({ onStart }: ExecuteRequest, work: Work<X>, context: X): Promise<Attempt> {
  onStart?.()
  try {
    return Promise.resolve(work(context))
  } catch (error) {
    return Promise.reject(error)
  }
}

export async function attemptOf<X>(request: ExecuteRequest, work: Work<X>, context: X): Promise<Attempt> {
  try {
    return await startWork(request, work, context)
  } catch (error) {
    return { kind: 'threw', error }
  }
}

/** For the handler of a request that is not covered: another method, or no key where none is required. It has no claim. */
export function uncoveredExecution<X extends Execution, C>({ kind, name }: Operation<X, C>): X {
  const missing = (what: string) =>
    new LatchkeyError(
      'invalid-key',
      `${name}: the request is not covered (its method, or no key), so there is no ${what}`,
    )
  const uncovered: Execution = {
    id: '',
    key: '',
    scope: '',
    operation: name,
    attempt: 1,
    fence: 0,
    signal: neverLost.signal(),
    downstreamKey() {
      throw missing('key to derive one from')
    },
    // There is no key to free.
    notExecuted() {},
    // Nor a row to name.
    async reference() {},
  }
  if (kind === 'atomic') {
    Object.defineProperty(uncovered, 'tx', {
      get() {
        throw missing('transaction')
      },
    })
  }
  // Every member of X is there, of the type that the operation's kind gives it.
  return uncovered as X
}

/** Hash of (identity, effect name, epoch). The epoch rises only with recorded negative evidence; until then it is 0. */
export function downstreamKey(id: string, effect: string, shape: 'uuid' | 'opaque' = 'uuid', epoch = 0): string {
  const digest = createHash('sha256')
    .update(lengthPrefixed(['latchkey.downstream.v1', id, effect, String(epoch)]))
    .digest()
  return shape === 'uuid' ? uuidText(digest) : digest.toString('base64url')
}

/** On the request itself: a WeakMap keyed by request costs GC time. */
const ofRequest: unique symbol = Symbol('latchkey: execution')

interface Executing {
  [ofRequest]?: Execution
}

/** Call it before the handler runs, with the object that the framework's handlers share: its request or its context. */
export function rememberExecution(request: object, execution: Execution): void {
  const executing: Executing = request
  executing[ofRequest] = execution
}

/**
 * The execution of the request that is being handled. Undefined where the request is not covered: its method is not one of `methods`, it
 * has no key where none is required, or it did not come through `idempotent()`. Name the type of an atomic operation's execution
 * yourself, `executionOf<AtomicExecution<Tx>>(…)`: the request does not carry it.
 */
export function executionOf<X extends Execution = Execution>(request: object): X | undefined {
  const executing: Executing = request
  return executing[ofRequest] as X | undefined // as the caller declares it
}
