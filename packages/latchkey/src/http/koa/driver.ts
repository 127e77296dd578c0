/** The few members of Koa that the adapter touches, by shape: installing Latchkey brings no Koa. */
import type { NodeBodyRequest } from '../node/body.ts'
import type { NodeResponse } from '../node/driver.ts'

export interface KoaContext {
  readonly req: NodeBodyRequest
  readonly res: NodeResponse
  /** Before a mounted app cut its prefix off. */
  readonly originalUrl: string
  /** Parsers leave `body` here, and some `rawBody`. */
  readonly request: object
  readonly state: Record<string | number | symbol, unknown>
  readonly app: { emit(event: string, ...args: unknown[]): boolean }
  /** False: Koa does not answer by itself. */
  respond?: boolean | undefined
  onerror(error: Error): void
}

export type KoaNext = () => Promise<unknown>

export type KoaMiddleware<C> = (context: C, next: KoaNext) => Promise<unknown>
