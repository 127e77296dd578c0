/** Retains the raw bytes of a body, for parsers that do not set `ctx.request.rawBody`. */
import { bodyBytesMaxDefault } from '../../engine/options.ts'
import { checkOptions, type ChecksOf } from '../../ports/check-options.ts'
import { byteCount } from '../../ports/option-kinds.ts'
import { teeBody } from '../node/request.ts'
import type { KoaContext, KoaMiddleware } from './driver.ts'

export interface CaptureBodyOptions {
  /**
   * Largest body whose bytes are retained. Default 1 MiB, as for operations. A covered request with a larger body gets 413
   * `body-too-large`; raise it together with the operation's `bodyBytesMax` and the parser's limit.
   */
  readonly bodyBytesMax?: number
}

const captureChecks: ChecksOf<CaptureBodyOptions> = { bodyBytesMax: byteCount }

/**
 * Mount it before the body parser: `app.use(captureBody()).use(koaBody())`. Works with any parser that reads `ctx.req`,
 * including multipart ones. Parsers that set `ctx.request.rawBody` (@koa/bodyparser) need it only for what they do not read
 * as text.
 */
export function captureBody(options: CaptureBodyOptions = {}): KoaMiddleware<Pick<KoaContext, 'req'>> {
  checkOptions('captureBody', options, captureChecks)
  const { bodyBytesMax = bodyBytesMaxDefault } = options
  return ({ req }, next) => {
    teeBody(req, bodyBytesMax)
    return next()
  }
}
