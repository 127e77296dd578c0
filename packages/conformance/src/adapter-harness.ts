/** What an adapter's author provides to run the adapter conformance cases over real sockets. */
import type { DefinedOperation, Execution, Header, Operation, Store } from 'latchkey'
import type { StatusHost } from 'latchkey/http/adapter'

/** Features that not every framework or adapter has. A case that needs one runs only where the harness provides it. */
export type AdapterNeed =
  /** Chunks written one by one. */
  | 'stream'
  /** A stream that fails before its end and that the framework does not end cleanly. */
  | 'broken-stream'
  /** A readable piped into the response. */
  | 'pipe'
  /** A source that is read as fast as the client reads, and returned from when its response is closed. */
  | 'source'
  /** The framework's own way to send a file. */
  | 'file'
  /** A 103 before the final response. */
  | 'early-hints'
  | 'trailers'
  /** `transactional` below. */
  | 'transactional'
  /** Serves `AppSpec.phased`. Its cases also need `transactional`. */
  | 'phased'
  /** Serves `AppSpec.status`, and deferred operations among `AppSpec.phased`. */
  | 'deferred'
  /** `bodyOf` below. */
  | 'body'
  /** The app has its own error handler, mounted as users of the framework do, which renders an `AppError`. */
  | 'error-handler'

/** An error unknown to every framework: the app's own error handler renders it, with this status and its message as the body. */
export class AppError extends Error {
  readonly renderAs: number

  constructor(renderAs: number, message: string) {
    super(message)
    this.renderAs = renderAs
  }
}

export interface AdapterHarness {
  readonly name: string
  readonly provides: ReadonlySet<AdapterNeed>
  /** Reads a request header from the context that the adapter passes to `scope`. */
  headerOf(context: unknown, name: string): string | undefined
  /** Reads the parsed JSON body from that context, the framework's usual way, and leaves it to the handler. */
  bodyOf?(context: unknown): unknown
  /** Serves the app on 127.0.0.1, on a port that the kernel chooses. */
  start(app: AppSpec): Promise<RunningApp>
  /** A fresh store for guarded operations. */
  memoryStore(): Store
  transactional?(): Promise<TransactionalHarness>
}

export interface TransactionalHarness {
  readonly store: Store
  /** Writes a business row through the execution's `tx`. */
  insert(tx: unknown, value: string): Promise<void>
  /** The committed rows, seen from outside any transaction. */
  values(): Promise<readonly string[]>
  close(): Promise<void>
}

export interface RunningApp {
  /** Without a trailing slash. */
  readonly url: string
  close(): Promise<void>
}

export interface AppSpec {
  /** Set on every response by a middleware that runs before Latchkey. */
  readonly outerHeaders: readonly Header[]
  readonly routes: readonly RouteSpec[]
  readonly phased: readonly PhasedRouteSpec[]
  readonly status?: StatusRouteSpec
}

/** A GET route that the adapter's `statusOf` answers. */
export interface StatusRouteSpec {
  readonly path: string
  readonly latchkey: StatusHost<unknown>
}

export interface PhasedRouteSpec extends Pick<RouteSpec, 'method' | 'path'> {
  readonly operation: DefinedOperation<unknown, unknown>
  /** The harness calls it in `{ input }`, with the parsed JSON body, read the framework's usual way. */
  input(body: unknown): unknown
}

export interface RouteSpec {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** `/orders/:id`: a colon marks a segment as a parameter. */
  readonly path: string
  readonly operation: Operation<Execution, unknown>
  /** The harness calls it in the idempotent handler and turns the reply into the framework's own calls. */
  run(input: HandlerInput): Promise<HandlerReply>
}

/** What a handler gets. */
export interface HandlerInput {
  /** Absent on a request that Latchkey does not cover. */
  readonly execution: Execution | undefined
  /** The parsed JSON body, read the framework's usual way; undefined when there is none. */
  readonly body: unknown
}

interface ReplyHead {
  readonly status: number
  /** Set by the handler; a name may repeat. */
  readonly headers: readonly Header[]
}

/** What a handler does to end its request. */
export type HandlerReply =
  /** `asText`: the handler passes a string instead of bytes. */
  | (ReplyHead & { readonly kind: 'answer'; readonly body: Uint8Array; readonly asText?: boolean })
  /** `breaks`: fails after the chunks instead of ending. */
  | (ReplyHead & { readonly kind: 'stream'; readonly chunks: readonly Uint8Array[]; readonly breaks: boolean })
  | (ReplyHead & { readonly kind: 'pipe'; readonly body: Uint8Array })
  | (ReplyHead & { readonly kind: 'source'; readonly source: AsyncIterable<Uint8Array> })
  | (ReplyHead & { readonly kind: 'file'; readonly path: string })
  /** Sends a 103 with this Link, waits, then responds. */
  | (ReplyHead & {
      readonly kind: 'early-hints'
      readonly link: string
      readonly proceed: Promise<void>
      readonly body: Uint8Array
    })
  | (ReplyHead & {
      readonly kind: 'trailers'
      readonly body: Uint8Array
      readonly trailers: Readonly<Record<string, string>>
    })
  | { readonly kind: 'redirect'; readonly status: 302 | 303; readonly location: string }
  /** The framework's own HTTP error, thrown, so that its error handler renders it with this status. */
  | { readonly kind: 'throw'; readonly status: number; readonly message: string }
  /** Thrown as it is. */
  | { readonly kind: 'crash'; readonly error: Error }

export interface AdapterCase {
  /** A sentence about behaviour. */
  readonly name: string
  readonly needs?: readonly AdapterNeed[]
  run(harness: AdapterHarness): Promise<void>
}
