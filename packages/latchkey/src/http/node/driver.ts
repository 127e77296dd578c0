/** The few members of Node's request and response that capture touches. Typed by shape: http, https and http2 all fit. */
export type HeaderValue = number | string | readonly string[]

export interface NodeEmitter {
  on(event: string, listener: Listener): unknown
  once(event: string, listener: Listener): unknown
  removeListener(event: string, listener: Listener): unknown
  emit(event: string, ...args: unknown[]): boolean
  listenerCount(event: string): number
  rawListeners(event: string): readonly object[]
}
// Listeners of Node's emitters take whatever their event carries.
export type Listener = (...args: never[]) => void

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
  readonly destroyed?: boolean
  getHeaders(): Record<string, number | string | string[] | undefined>
  getRawHeaderNames?(): string[]
  getHeader(name: string): number | string | string[] | undefined
  setHeader(name: string, value: HeaderValue): unknown
  removeHeader(name: string): void
  write(chunk: string | Uint8Array): boolean
  addTrailers?(trailers: Trailers): void
  end(chunk?: string | Uint8Array): unknown
  destroy(error?: Error): unknown
}
