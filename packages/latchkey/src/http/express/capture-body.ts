/**
 * Two ways to keep the raw bytes of a body that a parser reads. Without one, Latchkey compares what the parser made of
 * it.
 */
import { misconfigured } from '../../ports/errors.ts'
import { bodyBytesMaxDefault, keepBody, type NodeBodyRequest, teeBody } from '../capture/node-body.ts'
import type { ExpressMiddleware } from './driver.ts'

export interface CaptureBodyOptions {
  /**
   * Largest body that is kept. Default 1 MiB. A covered request with a larger one is refused; raise it together with
   * the parser's limit.
   */
  readonly limitBytes?: number
}

/**
 * Mount it before the body parser: `app.use(captureBody(), express.json())`. Works with any parser that reads the
 * request, also multipart ones, and keeps the bytes as they were sent.
 */
export function captureBody(options: CaptureBodyOptions = {}): ExpressMiddleware<NodeBodyRequest, object> {
  const { limitBytes = bodyBytesMaxDefault } = options
  if (!(limitBytes > 0)) throw misconfigured(`captureBody: limitBytes must be a positive number and is ${limitBytes}`)
  return (req, _res, next) => {
    teeBody(req, limitBytes)
    next()
  }
}

/** For parsers with a `verify` hook: `express.json({ verify: captureVerify })`. Keeps the bytes after decompression. */
export function captureVerify(req: object, _res: object, bytes: Uint8Array): void {
  keepBody(req, bytes)
}
