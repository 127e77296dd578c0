/** The few members of Express 4 and 5 that the adapter uses, typed by shape: installing Latchkey does not install Express. */
import type { NodeBodyRequest } from '../node/request.ts'
import type { NodeResponse } from '../node/driver.ts'

export interface ExpressRequest extends NodeBodyRequest {
  /** Set by the body parser. */
  body?: unknown
  /** `res.sendFile` and `res.render` report their errors here. */
  next?: ExpressNext | undefined
}

export type ExpressResponse = NodeResponse

export type ExpressNext = (error?: unknown) => void

/** Express's request type names its response type, so that a handler's response type is known from its request. */
export type ResponseOf<Req> = Req extends { res?: infer Res } ? Extract<Res, ExpressResponse> : ExpressResponse

export type ExpressHandler<X, Req> = (req: Req, res: ResponseOf<Req>, execution: X) => unknown

export type ExpressMiddleware<Req, Res = ExpressResponse> = (req: Req, res: Res, next: ExpressNext) => void

export type ExpressErrorMiddleware = (error: unknown, req: object, res: object, next: ExpressNext) => void
