/** An operation: its name, its kind, `run` for plain functions, and under `[engine]` what adapters and workers call. */
import type { Clock } from '../ports/clock.ts'
import type { Header } from '../ports/outcome.ts'
import type { KeyRecord, OperationKind, Resumable } from '../ports/store.ts'
import type { Telemetry } from '../ports/telemetry.ts'
import type { ProblemAnswer, ProblemDetails } from '../wire/render-problem.ts'
import type { engine } from './internal.ts'
import type { JsonOf, Storable } from './json-of.ts'
import type { NeverStored } from './rules/judge.ts'
import type { InboxHost } from './store/inbox.ts'
import type { Answer, ExecuteRequest, Work } from './answer.ts'
import type { AtomicExecution, Execution, GuardedExecution } from './execution.ts'
import type { RequestOwner, Scope } from './request.ts'

// Part of the options below, so that users can name them.
export type { ProblemCode } from '../wire/problem.ts'
export type { ProblemAnswer, ProblemDetails } from '../wire/render-problem.ts'

export interface HttpOptions<Context = unknown> {
  /** Codes and body shape of the answers Latchkey makes: `ietf` (default, RFC 9457) or `stripe`. */
  readonly profile?: 'ietf' | 'stripe'
  /** Base URL of your own problem pages; then `type` is `<base><code>` and a `Link: rel="describedby"` names it. Default: `urn:latchkey:problem:`. */
  readonly problemBase?: string
  /** Accept `Idempotency-Key` only as a quoted Structured Field String. Default false: most deployed clients send it bare. */
  readonly strictSyntax?: boolean
  /**
   * Send `Idempotency-Key-Expires-At` with stored answers: the row's own instant, by the store's clock, on the first answer and on every
   * replay. Default false, because the first answer then costs one read more.
   */
  readonly expiresHeader?: boolean
  /**
   * Response headers that are not stored and reach the first client only, as `Set-Cookie` and other credentials always do. Default none.
   * Name headers of your own that carry a secret, such as `X-Ticket`.
   */
  readonly neverStore?: readonly string[]
  /** The address of the status of deferred work, for `Location`: where `statusOf(latchkey)` is mounted. Default `/operations/<id>`. */
  readonly statusPath?: (id: string) => string
  /**
   * Called with the request and the row before each replay is sent: for logs and metrics of your own. Default: none. What it throws is reported
   * and changes nothing, and a promise is not awaited.
   */
  readonly onReplay?: (context: Context, record: KeyRecord) => unknown
  /**
   * Renders the problems that Latchkey answers, for an API with an error shape of its own. Default, and where it returns undefined: as `profile`
   * says. It is called for every refusal of a request and of the status resource, and must not be asynchronous. If it throws or returns what
   * cannot be sent, Latchkey's own answer is sent and the failure is reported.
   */
  readonly renderProblem?: (problem: ProblemDetails, context: Context) => ProblemAnswer | undefined
}

/** What all operations of one Latchkey share, as the adapters need it. */
export interface Shared<Context> {
  readonly scope: (context: Context) => Scope | Promise<Scope>
  readonly http: HttpOptions<Context>
  /** Of `http.neverStore`; undefined where nothing was named. */
  readonly neverStored: NeverStored | undefined
  readonly clock: Clock
  /** Never throws. */
  readonly telemetry: Telemetry
  /** When a stored answer expires, by its row. Undefined: it is not known now. Never rejects. */
  expiryOf(id: string): Promise<number | undefined>
  /** For consumers. */
  readonly inbox: InboxHost
}

/** What adapters need of an operation. `W`: what they hand in to be run. */
export interface OperationEngine<Context, W> extends RequestOwner<Context> {
  readonly shared: Shared<Context>
  /** Work that may be answered 202 must have begun within this. Absent: it is never deferred. */
  readonly deadlineMs?: number | undefined
  /** Never rejects for a refusal or a failed store: those are answers. */
  execute(request: ExecuteRequest, work: W): Promise<Answer>
  /** For a request that the application refused with `error` before its handler: answered from its row, if there is one. Claims nothing. */
  look(request: ExecuteRequest, error: unknown): Promise<Answer>
}

/** Handed in to be run by an operation that has its own definition. */
export interface InputSource<Input> {
  /** Called once, when the request is complete. What it throws rejects the execution. */
  input(): Input | Promise<Input>
  /** The client would rather have a 202 now than the outcome later. Only an operation that offers it does so. */
  readonly respondAsync?: boolean
}

export interface Resumer {
  /** For workers: claims a row that `store.resumable` listed and resumes it. */
  resume(row: Resumable): Promise<Resumed>
}

/** What every operation has, whatever its kind. */
export interface DeclaredOperation<Context = unknown> {
  readonly kind: OperationKind
  readonly name: string
  readonly [engine]: OperationEngine<Context, never>
}

/** An operation whose handler comes with each call. */
export interface Operation<X extends Execution = Execution, Context = unknown> extends DeclaredOperation<Context> {
  readonly kind: 'atomic' | 'guarded'
  readonly [engine]: OperationEngine<Context, Work<X>>
}

export interface RunRequest {
  /** The tenant. Required here as everywhere: `singleTenant()` says that there is one tenant only. */
  readonly scope: Scope
  readonly key: string
  /** JSON. The same key with another input is `key-reused`. */
  readonly input: unknown
}

export interface AtomicRunRequest extends RunRequest {
  /**
   * Your own open transaction: a client of pg, the tx of postgres.js, Drizzle, Kysely or Prisma, a SQLite tx of the store. Key and
   * answer are written in it and you commit. Absent: Latchkey opens one and hands it to the handler.
   */
  readonly tx?: unknown
}

/**
 * What a retry with the same key will get. `yes`: this value. `too-large`: a rejection with `response-not-stored`, because it is over
 * `outcomeBytesMax`; nothing runs again. `sensitive`: the same, because the operation is. `not-stored`: a new run, because `storeStatus` refuses it. `failed`: the store did not take it in
 * time; it is stored when the store is back, if this process lives, and until then a retry is `in-progress`. `unprotected`: the store
 * was down and the operation allows that; a retry may run again.
 */
export type Kept = 'yes' | 'too-large' | 'sensitive' | 'not-stored' | 'failed' | 'unprotected'

export interface RunResult<T> {
  readonly value: JsonOf<T>
  readonly kept: Kept
  /** The value of an earlier run: this handler was not called. */
  readonly replayed: boolean
}

export interface GuardedOperation<Context = unknown> extends Operation<GuardedExecution, Context> {
  readonly kind: 'guarded'
  /**
   * Runs the handler once for this identity; a retry gets the first value. It is stored as JSON, and the first caller gets it through JSON too.
   * Refusals reject with a `LatchkeyError`.
   */
  run<T extends Storable>(
    request: RunRequest,
    handler: (execution: GuardedExecution) => PromiseLike<T> | T,
  ): Promise<JsonOf<T>>
  /** As `run`, and says whether the value is kept for a retry. */
  runDetailed<T extends Storable>(
    request: RunRequest,
    handler: (execution: GuardedExecution) => PromiseLike<T> | T,
  ): Promise<RunResult<T>>
}

export interface AtomicOperation<Tx, Context = unknown> extends Operation<AtomicExecution<Tx>, Context> {
  readonly kind: 'atomic'
  /** As for a guarded operation, in one transaction with what the handler writes through `tx`. */
  run<T extends Storable>(
    request: AtomicRunRequest,
    handler: (execution: AtomicExecution<Tx>) => PromiseLike<T> | T,
  ): Promise<JsonOf<T>>
  /** As `run`, and says whether the value is kept for a retry; in a transaction of your own, once you have committed it. */
  runDetailed<T extends Storable>(
    request: AtomicRunRequest,
    handler: (execution: AtomicExecution<Tx>) => PromiseLike<T> | T,
  ): Promise<RunResult<T>>
}

export interface PhasedRunRequest<Input> extends RunRequest {
  /** JSON, at most 64 KiB and 256 levels (`input-too-large`); stored at the grant. A resumed run gets the stored one. */
  readonly input: Input
}

/** The outcome of phased work, decoded. */
export interface PhasedValue {
  readonly status: number
  readonly headers: readonly Header[]
  readonly value: unknown
}

/** How the resumption of a row ended; `not-mine`: another owner has it, or it is no longer resumable. */
export type Resumed = 'completed' | 'failed' | 'unknown' | 'parked' | 'not-mine'

/** An operation whose definition is declared with it, because a worker cannot resume a closure over a request. */
export interface DefinedOperation<Input, Context = unknown> extends DeclaredOperation<Context> {
  readonly kind: 'phased' | 'deferred'
  readonly version: number
  readonly [engine]: OperationEngine<Context, InputSource<Input>> & Resumer
}

export interface PhasedOperation<Input, Context = unknown> extends DefinedOperation<Input, Context> {
  readonly kind: 'phased'
  run(request: PhasedRunRequest<Input>): Promise<PhasedValue>
}

/** `accepted`: it is stored and not finished; a worker runs it, and the same `run` later returns how it ended. */
export type DeferredValue =
  | { readonly kind: 'accepted'; readonly id: string }
  | (PhasedValue & { readonly kind: 'done'; readonly id: string })

export interface DeferredOperation<Input, Context = unknown> extends DefinedOperation<Input, Context> {
  readonly kind: 'deferred'
  /** Returns as soon as the row and its input are committed, or with the outcome if it has one. */
  run(request: PhasedRunRequest<Input>): Promise<DeferredValue>
}
