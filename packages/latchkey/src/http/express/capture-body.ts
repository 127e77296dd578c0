/** Two ways to retain the raw bytes of a body that a parser reads. Without one, Latchkey compares the parsed body. */
import { bodyBytesMaxDefault } from '../../engine/options.ts'
import { checkOptions, type ChecksOf } from '../../ports/check-options.ts'
import { byteCount } from '../../ports/option-kinds.ts'
import { keepBody, type NodeBodyRequest, teeBody } from '../node/request.ts'
import type { ExpressMiddleware } from './driver.ts'

export interface CaptureBodyOptions {
  /**
   * Largest body whose bytes are retained. Default 1 MiB, as for operations. A covered request with a larger body gets 413
   * `body-too-large`; raise it together with the operation's `bodyBytesMax` and the parser's limit.
   */
  readonly bodyBytesMax?: number
}

const captureChecks: ChecksOf<CaptureBodyOptions> = { bodyBytesMax: byteCount }

/**
 * Mount it before the body parser: `app.use(captureBody(), express.json())`. Works with any parser that reads the
 * request, including multipart ones, and retains the bytes as they were sent.
 */
export function captureBody(options: CaptureBodyOptions = {}): ExpressMiddleware<NodeBodyRequest, object> {
  checkOptions('captureBody', options, captureChecks)
  const { bodyBytesMax = bodyBytesMaxDefault } = options
  return (req, _res, next) => {
    teeBody(req, bodyBytesMax)
    next()
  }
}

/** For parsers with a `verify` hook: `express.json({ verify: captureVerify })`. Retains the bytes after decompression. */
export function captureVerify(req: object, _res: object, bytes: Uint8Array): void {
  keepBody(req, bytes)
}
