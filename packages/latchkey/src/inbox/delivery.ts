/** One delivery: the message becomes a request of its operation, and the answer to it what is to be done about the message. */
import type { Answer, ExecuteRequest } from '../engine/answer.ts'
import type { Execution } from '../engine/execution.ts'
import { fingerprintRequest, type FingerprintOptions, previousOptions } from '../engine/fingerprint/fingerprint.ts'
import { engine } from '../engine/internal.ts'
import type { DeclaredOperation, DefinedOperation, Operation } from '../engine/operation.ts'
import { executeRequest, fingerprintedName, identityOf } from '../engine/request.ts'
import { attemptFunction } from '../engine/run-function.ts'
import { codeOf } from '../engine/rules/judge.ts'
import { isLatchkeyError, notExecuted } from '../ports/errors.ts'
import type { ParkedCause } from '../ports/faculties/inbox.ts'
import { type Backoff, backoffAfter, waitFor } from './backoff.ts'
import { beatEvery, harmlessBeat, type OnBeat } from './beat.ts'
import { type InboxMessage, mediaTypeOf, type ReadMessage } from './message.ts'
import { type InboxResult, type RetryCause, type Verdict, verdictOf } from './result.ts'

export interface InboxParts<C> {
  readonly operation: DeclaredOperation<C>
  readonly consumer: string
  readonly attemptsMax: number
  readonly backoff: Backoff
  readonly onUnknown: 'retry' | 'park'
  /** Undefined: with the lease. */
  readonly beatMs: number | undefined
}

/** What is known of an attempt while it runs. */
export interface AttemptUnderWay {
  /** It may be tried as often. */
  readonly budget: number
  /** 0: it was not granted, or its kind does not count here. */
  number: number
  /** Its handler was called, or would have been. */
  started: boolean
}

/** No input of the operation could be made of the message. */
export interface InputRefused {
  readonly kind: 'input-refused'
  readonly error: unknown
}

/** Hands the request to its operation. */
export type Runner = (request: ExecuteRequest, attempt: AttemptUnderWay) => Promise<Answer | InputRefused>

/** What the handler returns is not stored: a message has no client that waits for an answer. */
export type InboxHandler<X extends Execution, Data = unknown> = (execution: X, message: InboxMessage<Data>) => unknown

export function handlerRunner<X extends Execution, C>(
  { [engine]: { execute }, kind }: Operation<X, C>,
  handler: InboxHandler<X>,
  message: InboxMessage,
): Runner {
  return (request, attempt) =>
    execute(request, async execution => {
      attempt.started = true
      // The attempts of an atomic row are counted when they fail: its fence also rises when it expires.
      if (kind === 'guarded') attempt.number = execution.attempt
      // Its owners have died on it as often as it may be tried.
      if (attempt.number > attempt.budget) return { kind: 'threw', error: notExecuted('no attempt is left') }
      return attemptFunction(async (x: X) => void (await handler(x, message)), execution)
    })
}

export function definedRunner<Input, C>(
  { [engine]: { execute } }: DefinedOperation<Input, C>,
  input: (message: InboxMessage) => Input | Promise<Input>,
  message: InboxMessage,
): Runner {
  return async request => {
    try {
      return await execute(request, { input: () => input(message) })
    } catch (error) {
      if (isLatchkeyError(error, 'invariant')) throw error
      return { kind: 'input-refused', error }
    }
  }
}

export interface Delivery {
  readonly message: ReadMessage
  readonly run: Runner
  /** How often it had been tried when an operator had it run again. */
  readonly spent: number
  readonly onBeat: OnBeat | undefined
}

/** Nothing is parked yet. */
export type Ended = Exclude<InboxResult, { kind: 'parked' }> | ToPark

export interface ToPark {
  readonly kind: 'park'
  readonly cause: ParkedCause
  readonly rowId: string | undefined
  readonly attempts: number
  readonly error?: unknown
}

export async function deliver<C>(parts: InboxParts<C>, delivery: Delivery): Promise<Ended> {
  const { message, spent } = delivery
  if (message.key === undefined) return { kind: 'park', cause: 'missing-key', rowId: undefined, attempts: 0 }
  const attempt: AttemptUnderWay = { budget: spent + parts.attemptsMax, number: 0, started: false }
  let request: ExecuteRequest
  try {
    request = requestOf(parts, message, message.key)
  } catch (error) {
    // A `fingerprint` of the application that throws for it does so at each delivery.
    return { kind: 'park', cause: 'input-refused', rowId: undefined, attempts: spent, error }
  }
  const answer = await answerTo(parts, delivery, { request, attempt })
  const verdict = verdictOn(parts, answer, attempt)
  if (verdict.kind === 'done' || verdict.kind === 'duplicate') return verdict
  const rowId = request.identity.id
  if (verdict.kind === 'park') return { ...verdict, rowId, attempts: Math.max(spent, attempt.number) }
  if (verdict.kind === 'retry') return retryLater(parts, verdict)
  return afterFailure(parts, { error: verdict.error, request, attempt, spent })
}

function requestOf<C>({ operation, consumer }: InboxParts<C>, message: ReadMessage, key: string): ExecuteRequest {
  const owner = operation[engine]
  const { settings } = owner
  const before = previousOptions(settings.fingerprint)
  const fingerprint = (options: FingerprintOptions) =>
    fingerprintRequest(
      {
        method: fingerprintedName(owner) ?? '',
        path: message.type ?? '',
        query: '',
        mediaType: mediaTypeOf(message),
        body: message.payload,
        header: name => headerOf(message, name),
      },
      options,
    )
  return executeRequest(settings, {
    identity: identityOf(owner, consumer, key),
    key,
    fingerprint: fingerprint(settings.fingerprint),
    previousFingerprint: before && (() => fingerprint(before)),
    input: () => message.given.data,
  })
}

function headerOf({ headers }: ReadMessage, name: string): string | undefined {
  return Object.entries(headers).find(([each]) => each.toLowerCase() === name)?.[1]
}

interface Asked {
  readonly request: ExecuteRequest
  readonly attempt: AttemptUnderWay
}

/** A lease is renewed every third of it: two renewals may fail. */
const beatsPerLease = 3

/** Guarded work beats with the lease of its row: first the store, then the broker. Other work has no such lease, and beats as often. */
async function answerTo<C>(
  {
    operation: {
      kind,
      name,
      [engine]: { settings, shared },
    },
    beatMs = settings.leaseMs / beatsPerLease,
  }: InboxParts<C>,
  { run, onBeat }: Delivery,
  { request, attempt }: Asked,
): Promise<Answer | InputRefused> {
  if (onBeat === undefined) return run(request, attempt)
  const beat = harmlessBeat(shared.telemetry, name, onBeat)
  if (kind === 'guarded') return run({ ...request, onBeat: beat }, attempt)
  const stop = beatEvery(shared.clock, beatMs, beat)
  try {
    return await run(request, attempt)
  } finally {
    stop()
  }
}

function verdictOn<C>(
  { operation, onUnknown }: InboxParts<C>,
  answer: Answer | InputRefused,
  { started }: AttemptUnderWay,
): Verdict {
  if (answer.kind === 'input-refused') return { kind: 'park', cause: 'input-refused', error: answer.error }
  const isClosed = operation[engine].shared.inbox.isClosed()
  return verdictOf(answer, { onUnknown, isClosed, rolledBack: operation.kind === 'atomic' && started })
}

function retryLater<C>(parts: InboxParts<C>, verdict: Extract<Verdict, { kind: 'retry' }>): Ended {
  const { cause, afterMs, error } = verdict
  const { clock } = parts.operation[engine].shared
  const besideAnother = cause === 'in-progress'
  return retry(cause, waitFor(clock, { afterMs, besideAnother }, parts.backoff), error)
}

interface FailedDelivery extends Asked {
  readonly error: unknown
  readonly spent: number
}

async function afterFailure<C>(parts: InboxParts<C>, failed: FailedDelivery): Promise<Ended> {
  const { error, request, attempt, spent } = failed
  const { clock } = parts.operation[engine].shared
  let number: number | undefined
  try {
    number = await attemptsAfter(parts, failed)
  } catch (cause) {
    return storeFailed(parts, cause)
  }
  if (number === undefined) return retryLater(parts, { kind: 'retry', cause: 'in-progress', afterMs: 0, error })
  if (number >= attempt.budget) {
    return { kind: 'park', cause: 'attempts', rowId: request.identity.id, attempts: number, error }
  }
  return retry('failed', backoffAfter(clock, number - spent, parts.backoff), error)
}

/** Undefined: another delivery has its row now. */
async function attemptsAfter<C>(
  { operation }: InboxParts<C>,
  { error, request, attempt }: FailedDelivery,
): Promise<number | undefined> {
  const { settings, shared } = operation[engine]
  if (operation.kind === 'guarded') return attempt.number
  if (operation.kind === 'atomic') return shared.inbox.countFailure({ request, settings, errorCode: codeOf(error) })
  return shared.inbox.attemptsOf(request.identity.id)
}

/** The store, or the way to it, failed at what follows the run. */
export function storeFailed<C>(parts: InboxParts<C>, error: unknown): Extract<InboxResult, { kind: 'retry' }> {
  const { clock } = parts.operation[engine].shared
  const cause: RetryCause = isLatchkeyError(error, 'overloaded') ? 'overloaded' : 'store-down'
  return retry(cause, waitFor(clock, { afterMs: 0, besideAnother: false }, parts.backoff), error)
}

function retry(cause: RetryCause, afterMs: number, error: unknown): Extract<InboxResult, { kind: 'retry' }> {
  return { kind: 'retry', cause, afterMs, ...(error === undefined ? {} : { error }) }
}
