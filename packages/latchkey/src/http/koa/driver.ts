/** The few members of Koa that the adapter uses, typed by shape: installing Latchkey does not install Koa. */
import type { NodeBodyRequest } from '../node/request.ts'
import type { NodeResponse } from '../node/driver.ts'

export interface KoaContext {
  readonly req: NodeBodyRequest
  readonly res: NodeResponse
  /** With the prefix that a mounted app removes. */
  readonly originalUrl: string
  /** Parsers set `body` here, and some `rawBody`. */
  readonly request: object
  readonly state: Record<string | number | symbol, unknown>
  readonly app: { emit(event: string, ...args: unknown[]): boolean }
  /** False: Koa does not send the response itself. */
  respond?: boolean | undefined
  onerror(error: Error): void
}

export type KoaNext = () => Promise<unknown>

export type KoaMiddleware<C> = (context: C, next: KoaNext) => Promise<unknown>
