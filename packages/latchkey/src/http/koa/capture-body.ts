/** Keeps the raw bytes of a body for parsers that leave no `ctx.request.rawBody`. */
import { misconfigured } from '../../ports/errors.ts'
import { bodyBytesMaxDefault, teeBody } from '../capture/node-body.ts'
import type { KoaContext, KoaMiddleware } from './driver.ts'

export interface CaptureBodyOptions {
  /**
   * Largest body that is kept. Default 1 MiB. A covered request with a larger one is refused; raise it together with
   * the parser's limit.
   */
  readonly limitBytes?: number
}

/**
 * Mount it before the body parser: `app.use(captureBody()).use(koaBody())`. Works with any parser that reads `ctx.req`,
 * also multipart ones. Parsers that set `ctx.request.rawBody` (@koa/bodyparser) need it only for what they do not read
 * as text.
 */
export function captureBody(options: CaptureBodyOptions = {}): KoaMiddleware<Pick<KoaContext, 'req'>> {
  const { limitBytes = bodyBytesMaxDefault } = options
  if (!(limitBytes > 0)) throw misconfigured(`captureBody: limitBytes must be a positive number and is ${limitBytes}`)
  return ({ req }, next) => {
    teeBody(req, limitBytes)
    return next()
  }
}
