/** One HTTP request through Latchkey: everything that is HTTP and not a framework's. */
import type { Answer, Attempt, ExecuteRequest, StoredAs } from '../../engine/answer.ts'
import type { Execution } from '../../engine/execution.ts'
import { engine } from '../../engine/internal.ts'
import { ageOfKey, isRequestTooOld } from '../../engine/run/age.ts'
import { identify, type Scope } from '../../engine/identity.ts'
import { failureOutcome } from '../../engine/rules/judge.ts'
import type { DeclaredOperation, Operation } from '../../engine/operation.ts'
import { unreachable } from '../../ports/errors.ts'
import type { Header } from '../../ports/outcome.ts'
import type { Identity } from '../../ports/store.ts'
import { idempotencyKey, idempotencyKeyExpiresAt, idempotencyStored } from '../../wire/headers.ts'
import { readKeyField } from '../../wire/key-field.ts'
import { type Problem, type RenderedAnswer, renderProblem } from '../../wire/problem.ts'
import { describeRequest, fingerprintView, type WholeRequest } from './request-input.ts'
import { renderRefusal } from './answers/refusal.ts'
import { renderReplay } from './answers/replay.ts'
import { renderQueued } from './answers/accepted.ts'
import { type BodyRead, headerValue, type RequestView, tooLarge } from './request.ts'

/** What the adapter does now. */
export type Exchange =
  /** Not covered, or without a key where the key is optional: run the handler as if Latchkey were not there. */
  | { readonly kind: 'pass' }
  /** Send this. If the handler ran, nothing of what it produced is sent. */
  | { readonly kind: 'send'; readonly answer: RenderedAnswer }
  /** The handler ran for this caller: send its own response with these headers added. A `threw` is thrown again. */
  | { readonly kind: 'release'; readonly attempt: Attempt; readonly headers: readonly Header[] }

/** `work` runs the handler and captures its response; it is called at most once. */
export function exchange<Context, X extends Execution>(
  operation: Operation<X, Context>,
  view: RequestView<Context>,
  work: (execution: X) => Promise<Attempt>,
): Promise<Exchange> {
  return exchangeBy(operation, view, request => operation[engine].execute(request, work))
}

/** The same for every kind: `execute` is what becomes of the request once it is whole and known. */
export async function exchangeBy<Context>(
  operation: DeclaredOperation<Context>,
  view: RequestView<Context>,
  execute: (request: ExecuteRequest) => Promise<Answer>,
): Promise<Exchange> {
  const { settings, shared } = operation[engine]
  if (!covers(settings.methods, view.method)) return { kind: 'pass' }
  const refuse = (problem: Problem): Exchange => ({ kind: 'send', answer: renderProblem(problem, shared.http) })

  const field = readKeyField(view.header(idempotencyKey), {
    strictSyntax: shared.http.strictSyntax ?? false,
    keyFormat: settings.keyFormat,
  })
  if (field.kind === 'invalid') return refuse({ code: 'invalid-key', reason: field.reason, detail: field.detail })
  if (field.kind === 'missing') return withoutKey(operation, refuse)
  const { key } = field
  const age = ageOfKey(key, settings, shared.clock)
  if (age.kind === 'invalid') return refuse({ code: 'invalid-key', reason: 'format', detail: age.detail })

  const resolving = resolveIdentity(operation, view.context, key)
  const identity = resolving instanceof Promise ? await resolving : resolving
  if (identity === undefined) return refuse({ code: 'scope-unresolved' })

  // Complete before anything is reserved: an upload that breaks off leaves no row behind.
  const body = bounded(await view.body(settings.bodyBytesMax), settings.bodyBytesMax)
  if (body.kind !== 'bytes') return refuse(bodyProblem(operation, body))

  const tooOld = age.kind === 'too-old' || isRequestTooOld(view.context, settings, shared.clock)
  const request = executeRequest(operation, { view, body: body.bytes }, { identity, key, tooOld })
  const concluded = conclude(operation, { view, id: identity.id }, await execute(request))
  return concluded instanceof Promise ? await concluded : concluded
}

/** A body that the framework had read before may have any size. */
function bounded(body: BodyRead, bytesMax: number): BodyRead {
  return body.kind === 'bytes' && body.bytes.byteLength > bytesMax ? tooLarge(bytesMax) : body
}

/** Whatever the spelling: a method written `put` in the options must not leave PUT unprotected. */
export function covers(methods: readonly string[], method: string): boolean {
  return methods.includes(method) || methods.some(one => one.toUpperCase() === method.toUpperCase())
}

function withoutKey<C>(operation: DeclaredOperation<C>, refuse: (problem: Problem) => Exchange): Exchange {
  const { settings, shared } = operation[engine]
  if (settings.onMissingKey === 'refuse') return refuse({ code: 'missing-key' })
  shared.telemetry.count('unprotected', { operation: operation.name, detail: 'missing-key' })
  return { kind: 'pass' }
}

/** Undefined: the scope function threw or gave nothing. Nothing may run then: a shared scope would mix two tenants. */
function resolveIdentity<C>(
  operation: DeclaredOperation<C>,
  context: C,
  key: string,
): Identity | undefined | Promise<Identity | undefined> {
  const { name } = operation
  const { settings, shared } = operation[engine]
  const identityOf = (scope: Scope) => identify({ scope, operation: name, key, keyNamespace: settings.keyNamespace })
  const unresolved = (error: unknown) => {
    shared.telemetry.report('the scope could not be resolved, so the request was refused', { operation: name, error })
    return undefined
  }
  try {
    const scope = shared.scope(context)
    return typeof scope === 'string' ? identityOf(scope) : Promise.resolve(scope).then(identityOf).catch(unresolved)
  } catch (error) {
    return unresolved(error)
  }
}

/** The client is told what it can do about it. What the developer can do goes to the log. */
function bodyProblem<C>(operation: DeclaredOperation<C>, body: Exclude<BodyRead, { readonly kind: 'bytes' }>): Problem {
  if (body.kind === 'too-large') return { code: 'body-too-large', max: body.max, unit: body.unit }
  const code = body.kind === 'unsupported' ? 'body-unsupported' : 'body-unreadable'
  const { telemetry } = operation[engine].shared
  telemetry.report(`answered ${code}: ${body.cure}`, { operation: operation.name, detail: code })
  return { code }
}

interface Named {
  readonly identity: Identity
  readonly key: string
  readonly tooOld: boolean
}

function executeRequest<C>(
  operation: DeclaredOperation<C>,
  whole: WholeRequest<C>,
  { identity, key, tooOld }: Named,
): ExecuteRequest {
  const { settings } = operation[engine]
  const { authorizeReplay } = settings
  const { context } = whole.view
  return {
    identity,
    key,
    tooOld,
    fingerprint: fingerprintView(whole, operation),
    description: describeRequest(whole, settings),
    authorizeReplay: authorizeReplay && (async record => await authorizeReplay(context, record)),
  }
}

interface Asked<C> {
  readonly view: RequestView<C>
  readonly id: string
}

/** At once, except for a replay, which may have to be decoded, and where the client is to know when the answer expires. */
function conclude<C>(
  operation: DeclaredOperation<C>,
  { view, id }: Asked<C>,
  answer: Answer,
): Exchange | Promise<Exchange> {
  const { settings, shared } = operation[engine]
  switch (answer.kind) {
    case 'executed':
      if (answer.stored !== 'yes' || shared.http.expiresHeader !== true) {
        return executed(operation, answer, releaseHeaders(answer.stored))
      }
      // Without the field rather than with an instant that the next replay contradicts.
      return shared
        .expiryOf(id)
        .then(atMs => executed(operation, answer, atMs === undefined ? [] : [expiresHeader(atMs)]))
    case 'replayed': {
      const { status, headers, body = new Uint8Array() } = answer.outcome
      const expires = shared.http.expiresHeader === true ? expiresHeader(answer.expiresAtMs) : undefined
      const replay = { status, headers: expires === undefined ? headers : [...headers, expires], body }
      return renderReplay(replay, headerValue(view, 'Accept-Encoding')).then(send)
    }
    case 'accepted':
      return { kind: 'send', answer: renderQueued(answer.id, { view, http: shared.http }) }
    case 'refused':
      reportHidden(operation, answer)
      return {
        kind: 'send',
        answer: renderRefusal(answer.refusal, { http: shared.http, accept: settings.onInProgress === 'accept' }),
      }
    default:
      return unreachable(answer)
  }
}

type Executed = Extract<Answer, { kind: 'executed' }>

function executed<C>(
  operation: DeclaredOperation<C>,
  { attempt, stored }: Executed,
  headers: readonly Header[],
): Exchange {
  if (attempt.kind !== 'threw' || stored !== 'yes') return { kind: 'release', attempt, headers }
  // Nobody rendered the error, and an answer of ours was stored for it. Whatever the server would make of it, every retry gets ours.
  const { telemetry } = operation[engine].shared
  telemetry.report('answered an error with what is stored for it', { operation: operation.name, error: attempt.error })
  const outcome = failureOutcome(attempt.error)
  const { status, body = new Uint8Array() } = outcome
  return send({ status, headers: [...outcome.headers, ...headers].map(([field, value]) => [field, value]), body })
}

function send(answer: RenderedAnswer): Exchange {
  return { kind: 'send', answer }
}

function releaseHeaders(stored: StoredAs): Header[] {
  return stored === 'failed' || stored === 'unprotected' ? [[idempotencyStored, 'false']] : []
}

/** An HTTP-date (RFC 9110, section 5.6.7): what every HTTP library can already read. */
function expiresHeader(atMs: number): Header {
  return [idempotencyKeyExpiresAt, new Date(atMs).toUTCString()]
}

/** The handler's error is replaced by our 504, and the framework's own error handler may never see it. */
function reportHidden<C>(operation: DeclaredOperation<C>, { refusal }: Extract<Answer, { kind: 'refused' }>): void {
  if (refusal.cause === undefined) return
  const { telemetry } = operation[engine].shared
  telemetry.report(`answered ${refusal.code}`, { operation: operation.name, error: refusal.cause })
}
