/** The few members of Fastify 5 that the adapter uses, typed by shape: installing Latchkey does not install Fastify. */
import type { HeaderValue, NodeRequest, NodeResponse } from '../node/driver.ts'

export interface FastifyRequestLike {
  readonly raw: RawRequestLike
  readonly method: string
  readonly log: { error(details: object, message: string): void }
}

export interface RawRequestLike extends NodeRequest {
  readonly httpVersionMajor: number
  /** Over HTTP/1, all of it has arrived. Over HTTP/2, it has ended. */
  readonly complete: boolean
  readonly readableDidRead: boolean
  readonly readableFlowing: boolean | null
  readonly readableEncoding: BufferEncoding | null
  readonly readableLength: number
  read(): unknown
  unshift(chunk: Uint8Array): void
  resume(): unknown
  readonly headers: {
    readonly 'content-length'?: string | undefined
    readonly 'transfer-encoding'?: string | undefined
  }
}

export interface FastifyReplyLike {
  readonly raw: NodeResponse
  code(status: number): unknown
  /** A list is sent as one line per value. */
  header(name: string, value: string | readonly string[]): unknown
  removeHeader(name: string): unknown
  /** What was set on the reply, over what was set on `raw`. */
  getHeaders(): Record<string, HeaderValue | undefined>
  send(payload?: unknown): unknown
  hijack(): unknown
}

/** A readable stream as the content-type parser gets it: `raw`, or what an earlier hook made of it. */
export interface PayloadLike {
  readonly readableEncoding?: BufferEncoding | null
  emit(event: string, ...args: unknown[]): boolean
}

type Done = (error?: Error | null, value?: unknown) => void

export type PreParsing = (
  request: FastifyRequestLike,
  reply: FastifyReplyLike,
  payload: PayloadLike,
  done: Done,
) => void
export type PreHandler = (request: FastifyRequestLike, reply: FastifyReplyLike) => Promise<void>
export type OnError = (request: FastifyRequestLike, reply: FastifyReplyLike, error: unknown, done: () => void) => void
export type OnSend = (request: FastifyRequestLike, reply: FastifyReplyLike, payload: unknown, done: Done) => void

export type FastifyHandler = (this: unknown, request: FastifyRequestLike, reply: FastifyReplyLike) => unknown

/** A route's options as an `onRoute` hook may change them. */
export interface FastifyRouteLike {
  readonly method: string | readonly string[]
  handler: unknown
  preParsing?: unknown
  preHandler?: unknown
  onError?: unknown
  onSend?: unknown
}

export interface FastifyAppLike {
  // Overloaded by hook name in Fastify's types; no single signature fits them all.
  readonly addHook: (...args: never[]) => unknown
}

/** Fastify's own reply type, found where its request type leads to it: the adapter imports neither. */
export type ReplyOf<Request> = Request extends {
  readonly server: {
    readonly errorHandler: (error: never, request: never, reply: infer Reply extends FastifyReplyLike) => unknown
  }
}
  ? Reply
  : FastifyReplyLike
