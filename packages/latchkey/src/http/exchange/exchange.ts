/** One HTTP request through Latchkey: everything that is HTTP and not a framework's. */
import type { Answer, Attempt, ExecuteRequest, StoredAs } from '../../engine/answer.ts'
import {
  essenceOf,
  type FingerprintContext,
  type FingerprintOptions,
  fingerprintRequest,
  isJson,
  previousOptions,
  type RequestParts,
} from '../../engine/fingerprint/fingerprint.ts'
import { engine } from '../../engine/internal.ts'
import type { OperationEngine } from '../../engine/operation.ts'
import { executeRequest, fingerprintedName, identityOf, isRequestTooOld, keyAge } from '../../engine/request.ts'
import type { Age } from '../../engine/rules/age.ts'
import { failureOutcome } from '../../engine/rules/judge.ts'
import { atEndOfTurn, type TurnEnd } from '../../ports/clock.ts'
import type { Header } from '../../ports/outcome.ts'
import type { Identity } from '../../ports/store.ts'
import { idempotencyKey, idempotencyStored } from '../../wire/headers.ts'
import { readKeyField } from '../../wire/key-field.ts'
import type { KeyFieldResult } from '../../wire/key-rules.ts'
import type { Problem } from '../../wire/problem.ts'
import type { RenderedAnswer } from '../../wire/rendered-answer.ts'
import { expiresHeader, renderOwn } from './answers/own-answer.ts'
import { answerProblem } from './answers/problem.ts'
import { readKeyWith } from './read-key.ts'
import { missingKey, reportMissingPath, reportScope, unusableBody } from './request-faults.ts'
import { type BodyRead, type RequestView, tooLarge, withBody } from './request.ts'

/** What the adapter does now. */
export type Exchange =
  /** Not covered, or without a key where the key is optional: run the handler as if Latchkey were not there. */
  | { readonly kind: 'pass' }
  /** Send this. If the handler ran, nothing that it produced is sent. */
  | { readonly kind: 'send'; readonly answer: RenderedAnswer }
  /** The handler ran for this caller: send its own response with these headers added. A `threw` is thrown again. */
  | {
      readonly kind: 'release'
      readonly attempt: Attempt
      readonly stored: StoredAs
      readonly headers: readonly Header[]
    }

/** What the exchange needs of an operation. `W`: what the operation is handed to run. */
export interface ExchangeOperation<Context, W> {
  readonly [engine]: OperationEngine<Context, W>
}

/** `work`: of atomic and guarded operations, runs the handler and captures its response, at most once; of the others, gives the input. */
export function exchange<Context, W>(
  operation: ExchangeOperation<Context, W>,
  view: RequestView<Context>,
  work: W,
): Promise<Exchange> {
  const owner = operation[engine]
  // No async function: the frame of one costs every request more than reading it does.
  try {
    const read = readRequest(owner, view)
    return read instanceof Promise
      ? read.then(late => execute(owner, view, { work, read: late }))
      : execute(owner, view, { work, read })
  } catch (error) {
    return Promise.reject(error)
  }
}

function execute<C, W>(
  owner: OperationEngine<C, W>,
  view: RequestView<C>,
  { work, read }: { readonly work: W; readonly read: ReadRequest },
): Promise<Exchange> {
  if (read.kind !== 'request') return Promise.resolve(read)
  const answering = new Answering(owner, view, read.request.identity.id)
  owner.execute(read.request, work).then(
    answer => answering.answered(answer),
    (error: unknown) => answering.threw(error),
  )
  return answering.exchanged
}

/**
 * Answers that are ready in one turn of the event loop are sent together at its end. A write to a connection whose reader sleeps has to wake
 * it, which costs more than the request did so far; the writes after it find the reader awake.
 */
class Answering<C> implements TurnEnd {
  readonly exchanged: Promise<Exchange>
  threw: (error: unknown) => void = () => {}
  private readonly owner: Owner<C>
  private readonly view: RequestView<C>
  private readonly id: string
  private resolve: (exchange: Exchange | Promise<Exchange>) => void = () => {}
  private answer: Answer | undefined = undefined

  constructor(owner: Owner<C>, view: RequestView<C>, id: string) {
    this.owner = owner
    this.view = view
    this.id = id
    this.exchanged = new Promise((resolve, reject) => {
      this.resolve = resolve
      this.threw = reject
    })
  }

  answered(answer: Answer): void {
    this.answer = answer
    atEndOfTurn(this)
  }

  endOfTurn(): void {
    if (this.answer === undefined) return
    try {
      this.resolve(render(this.owner, { view: this.view, id: this.id }, this.answer))
    } catch (error) {
      this.threw(error)
    }
  }
}

/**
 * One request that the application refused with `error` before its handler could begin: answered from its row, if it has one. `pass`, or a
 * `release` with the error: nothing is known of it, and the error is the application's own answer. Claims nothing.
 */
export async function exchangeRefused<Context>(
  operation: ExchangeOperation<Context, never>,
  view: RequestView<Context>,
  error: unknown,
): Promise<Exchange> {
  const owner = operation[engine]
  const read = await readRequest(owner, view)
  if (read.kind !== 'request') return read
  return render(owner, { view, id: read.request.identity.id }, await owner.look(read.request, error))
}

/** What comes of reading a request: what the engine executes, or the end of the exchange. */
type ReadRequest = { readonly kind: 'request'; readonly request: ExecuteRequest } | Exchange

/** A promise only where the scope or the body is one. */
function readRequest<C>(owner: Owner<C>, view: RequestView<C>): ReadRequest | Promise<ReadRequest> {
  const { settings, shared } = owner
  if (!covers(settings.methods, view.method)) return { kind: 'pass' }

  const { key: source, keyFormat } = settings
  if (typeof source !== 'function') {
    const name = source.header
    // Only the draft's own field is a Structured Field.
    const strictSyntax = shared.http.strictSyntax === true && name.toLowerCase() === idempotencyKey.toLowerCase()
    return readKeyed(owner, view, readKeyField(view.header(name), { strictSyntax, keyFormat, name }))
  }
  // The function may look into the body, so the body is complete and within its limit before it is called.
  return after(view.body(settings.bodyBytesMax), body => {
    const read = bounded(body, settings.bodyBytesMax)
    if (read.kind !== 'bytes') return refuse(owner, view.context, unusableBody(owner, read))
    return readKeyWith(source, owner, view.context).then(field => readKeyed(owner, withBody(view, read), field))
  })
}

function readKeyed<C>(
  owner: Owner<C>,
  view: RequestView<C>,
  field: KeyFieldResult,
): ReadRequest | Promise<ReadRequest> {
  const { settings, shared } = owner
  const { context } = view
  if (field.kind === 'missing') return withoutKey(owner, context)
  if (field.kind === 'invalid')
    return refuse(owner, context, { code: 'invalid-key', reason: field.reason, detail: field.detail })
  const { key } = field
  const age = keyAge(settings, key, shared.clock)
  if (age.kind === 'invalid')
    return refuse(owner, context, { code: 'invalid-key', reason: 'format', detail: age.detail })

  return after(resolveIdentity(owner, context, key), identity => {
    if (identity === undefined) return refuse(owner, context, { code: 'scope-unresolved' })
    // Complete before anything is reserved: an upload that breaks off leaves no row behind.
    return after(view.body(settings.bodyBytesMax), body => requestOf(owner, view, { identity, key, age, body }))
  })
}

function after<T, U>(value: T | Promise<T>, next: (value: T) => U | Promise<U>): U | Promise<U> {
  return value instanceof Promise ? value.then(next) : next(value)
}

interface WholeRequest {
  readonly identity: Identity
  readonly key: string
  readonly age: Age
  readonly body: BodyRead
}

function requestOf<C>(owner: Owner<C>, view: RequestView<C>, { identity, key, age, body }: WholeRequest): ReadRequest {
  const { settings, shared } = owner
  const { context } = view
  const read = bounded(body, settings.bodyBytesMax)
  if (read.kind !== 'bytes') return refuse(owner, context, unusableBody(owner, read))
  const { authorizeReplay, describe } = settings
  const before = previousOptions(settings.fingerprint)
  const request = executeRequest(settings, {
    identity,
    key,
    isTooOld: age.kind === 'too-old' || isRequestTooOld(settings, context, shared.clock),
    fingerprint: fingerprintRequest(requestParts(view, read.bytes), settings.fingerprint, fingerprintContext(owner)),
    previousFingerprint: before && (() => fingerprintBefore(owner, requestParts(view, read.bytes), before)),
    input: describe && (() => jsonOf(view, read.bytes)),
    authorizeReplay: authorizeReplay && (async record => await authorizeReplay(context, record)),
  })
  return { kind: 'request', request }
}

/** The engine's part of an operation, whatever it is handed to run. */
type Owner<C> = OperationEngine<C, never>

function refuse<C>({ shared }: Owner<C>, context: C, problem: Problem): Exchange {
  return send(answerProblem(problem, shared, context))
}

/** A body that the framework read may have any size. */
function bounded(body: BodyRead, bytesMax: number): BodyRead {
  return body.kind === 'bytes' && body.bytes.byteLength > bytesMax ? tooLarge(bytesMax) : body
}

/** Whatever the spelling: a method written `put` in the options must not leave PUT unprotected. */
export function covers(methods: readonly string[], method: string): boolean {
  return methods.includes(method) || methods.some(one => one.toUpperCase() === method.toUpperCase())
}

function withoutKey<C>(owner: Owner<C>, context: C): Exchange {
  const problem = missingKey(owner)
  return problem === undefined ? { kind: 'pass' } : refuse(owner, context, problem)
}

/** Undefined: the scope function threw or returned no usable scope. Nothing may run then: a shared scope would mix two tenants. */
function resolveIdentity<C>(
  owner: Owner<C>,
  context: C,
  key: string,
): Identity | undefined | Promise<Identity | undefined> {
  const unresolved = (error: unknown) => {
    reportScope(owner, error)
    return undefined
  }
  try {
    const scope = owner.shared.scope(context)
    if (typeof scope === 'string') return identityOf(owner, scope, key)
    return Promise.resolve(scope)
      .then(resolved => identityOf(owner, resolved, key))
      .catch(unresolved)
  } catch (error) {
    return unresolved(error)
  }
}

/** The field as one value; undefined when it is absent. Lines are joined as RFC 9110, section 5.3, allows. */
function headerValue(view: RequestView<unknown>, name: string): string | undefined {
  const lines = view.header(name)
  return lines.length < 2 ? lines[0] : lines.join(', ')
}

function requestParts(view: RequestView<unknown>, body: Uint8Array): RequestParts {
  return {
    method: view.method.toUpperCase(),
    path: view.path,
    query: view.query,
    mediaType: headerValue(view, 'Content-Type'),
    header: name => headerValue(view, name),
    body,
  }
}

/** What is missing from the body was reported when it was read with the current key. */
function fingerprintBefore<C>(owner: Owner<C>, parts: RequestParts, options: FingerprintOptions): Uint8Array {
  return fingerprintRequest(parts, options, { operation: fingerprintedName(owner) })
}

function fingerprintContext<C>(owner: Owner<C>): FingerprintContext | undefined {
  const operation = fingerprintedName(owner)
  if (owner.settings.fingerprint.include === undefined) return operation === undefined ? undefined : { operation }
  return { operation, onMissing: path => reportMissingPath(owner, path) }
}

/** The parsed JSON body, or undefined where there is none. */
function jsonOf(view: RequestView<unknown>, body: Uint8Array): unknown {
  if (!isJson(essenceOf(headerValue(view, 'Content-Type')))) return undefined
  try {
    return JSON.parse(new TextDecoder().decode(body))
  } catch {
    return undefined
  }
}

interface AnsweredRequest<C> {
  readonly view: RequestView<C>
  readonly id: string
}

/** A promise only for a replay, which may have to be decoded, and where the client is to know when the answer expires. */
function render<C>(owner: Owner<C>, { view, id }: AnsweredRequest<C>, answer: Answer): Exchange | Promise<Exchange> {
  if (answer.kind !== 'executed') return after(renderOwn(owner, view, answer), send)
  const { shared } = owner
  if (answer.stored !== 'yes' || shared.http.expiresHeader !== true) {
    return release(owner, answer, releaseHeaders(answer.stored))
  }
  // Without the field rather than with an instant that the next replay contradicts.
  return shared.expiryOf(id).then(atMs => release(owner, answer, atMs === undefined ? [] : [expiresHeader(atMs)]))
}

type Executed = Extract<Answer, { kind: 'executed' }>

function release<C>({ name, shared }: Owner<C>, { attempt, stored }: Executed, headers: readonly Header[]): Exchange {
  if (attempt.kind !== 'threw' || stored !== 'yes') return { kind: 'release', attempt, stored, headers }
  // No error handler rendered the error, and an answer of ours was stored for it: every retry gets ours, and so does this client.
  shared.telemetry.report('a handler threw, and its client got the stored answer', {
    operation: name,
    error: attempt.error,
  })
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

/** A whole response with a clean end, as the client would get it. */
export interface CapturedResponse {
  readonly status: number
  /** What was set after Latchkey began; see `addedHeaders`. */
  readonly headers: readonly Header[]
  /** Undefined where it was sent while the handler ran, because it is too large to be stored. */
  readonly body: Uint8Array | undefined
}

/**
 * The attempt of a handler that answered. `error`: the answer was rendered from this throw, so that an atomic operation rolls
 * its rows back. It goes in whole: the engine applies the size limit and leaves out the headers that are not stored.
 */
export function attemptOf(response: CapturedResponse, error?: unknown): Attempt {
  const { status, body } = response
  const outcome = { status, headers: response.headers, body, version: 0 }
  return error === undefined ? { kind: 'answered', outcome } : { kind: 'answered', outcome, error }
}

/**
 * The headers that are new or changed. What an outer middleware set before is not stored with the outcome: it runs again for a
 * replay and sets what fits that caller.
 */
export function addedHeaders(before: readonly Header[], after: readonly Header[]): readonly Header[] {
  if (before.length === 0) return after
  const known = valuesByName(before)
  const now = valuesByName(after)
  return after.filter(([name, value]) => {
    const lower = name.toLowerCase()
    const old = known.get(lower)
    if (old === undefined) return true
    const current = now.get(lower)
    // Vary and Link grow: only what was appended is stored. A value that was replaced is stored whole.
    const grew = current !== undefined && old.every(one => current.includes(one))
    return grew ? !old.includes(value) : true
  })
}

function valuesByName(headers: readonly Header[]): Map<string, string[]> {
  const values = new Map<string, string[]>()
  for (const [name, value] of headers) {
    const lower = name.toLowerCase()
    values.set(lower, [...(values.get(lower) ?? []), value])
  }
  return values
}
