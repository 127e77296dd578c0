/**
 * The few members of Express that the adapter touches, by shape: installing Latchkey brings no Express. Versions 4 and
 * 5 fit.
 */
import type { NodeBodyRequest } from '../node/body.ts'
import type { NodeResponse } from '../node/driver.ts'

export interface ExpressRequest extends NodeBodyRequest {
  /** What a parser made of the body. */
  body?: unknown
  /** `res.sendFile` and `res.render` report their errors here. */
  next?: ExpressNext | undefined
}

export type ExpressResponse = NodeResponse

export type ExpressNext = (error?: unknown) => void

/** A request of Express names its response, so that a handler's is known from its request. */
export type ResponseOf<Req> = Req extends { res?: infer Res } ? Extract<Res, ExpressResponse> : ExpressResponse

export type ExpressHandler<X, Req> = (req: Req, res: ResponseOf<Req>, execution: X) => unknown

export type ExpressMiddleware<Req, Res = ExpressResponse> = (req: Req, res: Res, next: ExpressNext) => void

export type ExpressErrorMiddleware = (error: unknown, req: object, res: object, next: ExpressNext) => void
