/** The few members of Node's request and response that capture touches. Typed by shape: http, https and http2 all fit. */
export type HeaderValue = number | string | readonly string[]

export interface NodeEmitter {
  on<Args extends unknown[]>(event: string, listener: Listener<Args>): unknown
  once<Args extends unknown[]>(event: string, listener: Listener<Args>): unknown
  removeListener<Args extends unknown[]>(event: string, listener: Listener<Args>): unknown
  emit(event: string, ...args: unknown[]): boolean
  listenerCount(event: string): number
  rawListeners(event: string): readonly object[]
}
/** Listeners of Node's emitters take whatever their event carries. Generic: every version of Node's own types fits that. */
export type Listener<Args extends unknown[] = never[]> = (...args: Args) => void

export type Trailers = Readonly<Record<string, string>>

export interface NodeRequest extends NodeEmitter {
  readonly method?: string | undefined
  readonly url?: string | undefined
  /** Express keeps the URL before its routers cut their mount path off. */
  readonly originalUrl?: string | undefined
  readonly rawHeaders: readonly string[]
}

export interface NodeResponse extends NodeEmitter {
  statusCode: number
  statusMessage: string
  readonly headersSent: boolean
  readonly writableEnded: boolean
  readonly writableHighWaterMark?: number
  readonly writableCorked?: number
  readonly destroyed?: boolean
  getHeaders(): Record<string, number | string | string[] | undefined>
  getRawHeaderNames?(): string[]
  getHeader(name: string): number | string | string[] | undefined
  setHeader(name: string, value: HeaderValue): unknown
  removeHeader(name: string): void
  write(chunk: string | Uint8Array): boolean
  addTrailers?(trailers: Trailers): void
  end(chunk?: string | Uint8Array): unknown
  uncork?(): void
  destroy(error?: Error): unknown
}

/** A piece of output that Node has not written yet. */
export interface OutputEntry {
  readonly data: string | Uint8Array
  readonly encoding: BufferEncoding | null | undefined
  readonly callback: ((error?: Error | null) => void) | null | undefined
}

/** Node's own response for HTTP/1, with the undocumented members that holding it back needs. `canHold` checks them at load. */
export interface Http1Response extends NodeResponse, WithSharedListener {
  socket: object | null
  destroyed: boolean
  readonly finished: boolean
  readonly writableHighWaterMark: number
  /** Set once 'close' was emitted. */
  _closed: boolean
  /** The head as it is sent, from the moment it is complete. */
  _header: string | null
  _hasBody: boolean
  _contentLength: number | null
  _trailer: string
  readonly chunkedEncoding: boolean
  /** What waits for a socket. Node writes a response here while its socket belongs to another one. */
  readonly outputData: OutputEntry[]
  outputSize: number
  /** Called with the size of each piece that joins or leaves `outputData`. */
  _onPendingData: (this: Http1Response, bytes: number) => void
  /** Writes `outputData` to the socket, if there is one. */
  _flush(): void
  cork(): void
  assignSocket: (socket: object) => void
  writeHead: unknown
  hasHeader(name: string): boolean
  // How the connection is to be used, as the server and outer code have chosen.
  shouldKeepAlive: boolean
  sendDate: boolean
  strictContentLength: boolean
  useChunkedEncodingByDefault: boolean
  maxRequestsOnConnectionReached: boolean
  _keepAliveTimeout: number
  _removedConnection: boolean
  _removedContLen: boolean
  _removedTE: boolean
}

/** Node's own request for HTTP/1. */
export interface Http1Request extends NodeRequest, WithSharedListener {
  socket?: object | null
  destroy?: (this: object, error?: unknown) => unknown
}

interface WithSharedListener {
  /** Where `on-finished`, which Koa and Express's `sendFile` use, has one listener for all its callers. */
  __onFinished?: unknown
}
