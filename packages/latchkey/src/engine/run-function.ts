/** `operation.run`: an execution whose answer is a JSON value instead of an HTTP response. */
import { checkOptions, type Checks } from '../ports/check-options.ts'
import type { Clock } from '../ports/clock.ts'
import { type ErrorDetails, errorText, inputTooLarge, isLatchkeyError, LatchkeyError } from '../ports/errors.ts'
import type { Outcome } from '../ports/outcome.ts'
import type { Answer, Attempt, ExecuteRequest, Refusal } from './answer.ts'
import type { Execution } from './execution.ts'
import { fingerprintInput, previousOptions } from './fingerprint/fingerprint.ts'
import { hasLoneSurrogate } from './fingerprint/json/scalar.ts'
import { jsonBytesMax } from './steps/json.ts'
import { bodyBytesMax, storedFailureStatus } from './rules/judge.ts'
import { runChecks } from './option-checks.ts'
import type { RunRequest, RunResult } from './operation.ts'
import { checkKey, type KeyRules } from '../wire/key-rules.ts'
import type { Settings } from './options.ts'
import { executeRequest, fingerprintedName, identityOf, keyAge, type RequestOwner } from './request.ts'

export interface FunctionOwner<C> extends RequestOwner<C> {
  readonly clock: Clock
}

/** `checks`: the names that the request may have, which differ by the kind. */
export function runRequest<C>(owner: FunctionOwner<C>, given: RunRequest, checks: Checks = runChecks): ExecuteRequest {
  const { name, settings, clock } = owner
  checkOptions(`${name}: run`, given, checks)
  const { scope, key, input } = given
  checkKeyText(name, key, settings.keyFormat)
  const age = keyAge(settings, key, clock)
  if (age.kind === 'invalid') throw new LatchkeyError('invalid-key', `${name}: ${age.detail}`)
  const before = previousOptions(settings.fingerprint)
  return executeRequest(settings, {
    identity: identityOf(owner, scope, key),
    key,
    isTooOld: age.kind === 'too-old',
    fingerprint: fingerprintInput(input, settings.fingerprint, fingerprintedName(owner)),
    previousFingerprint: before && (() => fingerprintInput(input, before, fingerprintedName(owner))),
    input: () => input,
  })
}

/** As over HTTP. */
function checkKeyText(operation: string, key: string, format: KeyRules): void {
  if (typeof key !== 'string' || hasLoneSurrogate(key)) {
    throw new LatchkeyError('invalid-key', `${operation}: the key must be text without lone surrogates`)
  }
  const checked = checkKey(key, format)
  if (checked.kind === 'invalid') throw new LatchkeyError('invalid-key', `${operation}: ${checked.detail}`)
}

export async function attemptFunction<X extends Execution>(handler: (x: X) => unknown, execution: X): Promise<Attempt> {
  try {
    return { kind: 'answered', outcome: encode(execution.operation, await handler(execution)) }
  } catch (error) {
    return { kind: 'threw', error }
  }
}

export interface FunctionRuns<Given, Handler> {
  run(given: Given, handler: Handler): Promise<never>
  runDetailed(given: Given, handler: Handler): Promise<never>
}

/** `run` and `runDetailed` of an operation. Their values are JSON of what the handler returned, which the operation's own type names. */
export function functionRuns<C, Given, Handler>(
  { name, settings }: FunctionOwner<C>,
  answerTo: (given: Given, handler: Handler) => Answer | Promise<Answer>,
): FunctionRuns<Given, Handler> {
  return {
    run: async (given, handler) => valueOf(name, await answerTo(given, handler)) as never,
    runDetailed: async (given, handler) => resultOf(name, await answerTo(given, handler), settings) as never,
  }
}

/** The first caller gets the value as a retry will get it, through JSON: a Date that turns into text does so at once. */
function valueOf(operation: string, answer: Answer): unknown {
  return decode(operation, outcomeOf(operation, answer))
}

/** With what a retry will get. */
function resultOf(
  operation: string,
  answer: Answer,
  settings: Pick<Settings, 'outcomeBytesMax' | 'sensitive'>,
): RunResult<unknown> {
  const outcome = outcomeOf(operation, answer)
  const value = decode(operation, outcome) as never // JSON of what the handler returned
  if (answer.kind !== 'executed') return { value, kept: 'yes', replayed: true }
  const isBodyStored = answer.stored !== 'yes' || (outcome.body?.byteLength ?? 0) <= bodyBytesMax(settings)
  const lostBody = settings.sensitive ? 'sensitive' : 'too-large'
  return { value, kept: isBodyStored ? answer.stored : lostBody, replayed: false }
}

/** The outcome behind an answer; a refusal and a throw are thrown. */
export function outcomeOf(operation: string, answer: Answer): Outcome {
  switch (answer.kind) {
    case 'replayed':
      return answer.outcome
    case 'refused':
      throw refusalError(operation, answer.refusal)
    case 'executed':
      if (answer.attempt.kind === 'answered') return answer.attempt.outcome
      if (answer.attempt.kind === 'threw') throw answer.attempt.error
      throw new LatchkeyError('invariant', `${operation}: a plain function has no unreplayable answer`)
    case 'accepted':
      throw new LatchkeyError('invariant', `${operation}: only deferred work is accepted for later`)
  }
}

function encode(operation: string, value: unknown): Outcome {
  if (value === undefined) return { status: 204, headers: [], body: new Uint8Array(), version: 0 }
  const text: string | undefined = JSON.stringify(value)
  if (text === undefined) {
    throw new LatchkeyError('misconfigured', `${operation}: the handler returned a ${typeof value}, which is not JSON`)
  }
  return { status: 200, headers: [['content-type', 'application/json']], body: Buffer.from(text), version: 0 }
}

function decode(operation: string, { status, body }: Outcome): unknown {
  if (status === storedFailureStatus) {
    throw new LatchkeyError(
      'stored-failure',
      `${operation}: failed before, and the failure is stored (onFailure: 'store')`,
    )
  }
  if (body === undefined || body.byteLength === 0) return undefined
  return JSON.parse(new TextDecoder().decode(body))
}

function refusalError(operation: string, refusal: Refusal): LatchkeyError {
  const { code, retryAfterMs, cause, differs, maybeAccepted, limit } = refusal
  const details = { cause, maybeAccepted, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) }
  switch (code) {
    case 'key-reused': {
      const what = differs.length === 0 ? '' : ` (${differs.join(', ')})`
      return new LatchkeyError(code, `${operation}: the key was used before with another input${what}`, details)
    }
    case 'in-progress':
      return new LatchkeyError(code, `${operation}: the same key is being executed; try again later`, details)
    case 'outcome-unknown':
      return new LatchkeyError(
        code,
        `${operation}: it may have happened; it does not run again until it is settled`,
        details,
      )
    case 'response-not-stored':
      return new LatchkeyError(
        code,
        `${operation}: it happened, but its value was not stored: it is too large, or the operation is sensitive`,
        details,
      )
    case 'input-too-large':
      return inputTooLarge(`${operation}: the input`, limit ?? { max: jsonBytesMax, unit: 'bytes' })
    case 'parked':
      return new LatchkeyError(code, `${operation}: parked until an operator acts`, details)
    case 'replay-not-authorized':
      return new LatchkeyError('scope-unresolved', `${operation}: the caller may not see the stored answer`, details)
    case 'store-unavailable':
      return unavailableError(operation, refusal, details)
    case 'overloaded':
      return new LatchkeyError(code, `${operation}: too many calls wait for the store; nothing was executed`, details)
    case 'limit-exceeded':
      return new LatchkeyError(code, `${operation}: over a limit of its scope; nothing was executed`, details)
    case 'transaction-rolled-back':
      return new LatchkeyError(code, `${operation}: rolled back, nothing happened: ${errorText(cause)}`, details)
    case 'row-unreadable':
      return new LatchkeyError(
        code,
        `${operation}: the stored record cannot be read by this version; nothing was executed`,
        details,
      )
    case 'fingerprint-version':
      return new LatchkeyError(code, `${operation}: the row was written by a newer version of Latchkey`, details)
    case 'key-expired':
      return new LatchkeyError(code, `${operation}: it happened long ago, and its value is no longer stored`, details)
    case 'key-too-old':
      return new LatchkeyError(
        code,
        `${operation}: the key is older than keyAgeMsMax, and nothing is stored under it; it may have happened long ago`,
        details,
      )
  }
}

/** With the store's own words: the caller of a plain function is the one who can act on them. */
function unavailableError(operation: string, { cause, maybeAccepted }: Refusal, details: ErrorDetails): LatchkeyError {
  const means = maybeAccepted
    ? 'the request may have been accepted and may run later: retry with the same key'
    : 'nothing was executed or stored'
  if (!isLatchkeyError(cause) || cause.code === 'store-unavailable') {
    const why = cause === undefined ? '' : ` (${errorText(cause)})`
    return new LatchkeyError('store-unavailable', `${operation}: the store is unavailable; ${means}${why}`, details)
  }
  // The store answered, with a fault and its cure.
  return maybeAccepted ? new LatchkeyError(cause.code, `${cause.message}; ${means}`, details) : cause
}
