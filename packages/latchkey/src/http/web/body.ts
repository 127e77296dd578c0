/** Reads the body of a fetch `Request` or `Response` up to a limit, with as little of it in memory as possible. */
import { type BodyRead, tooLarge } from '../exchange/request.ts'

export type FetchBody =
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array<ArrayBuffer> }
  | Extract<BodyRead, { kind: 'too-large' }>

/**
 * The length that the client has declared, if any. Servers enforce it (RFC 9112, section 6.3; RFC 9113, section 8.1.1), so a body within
 * the limit may be read whole.
 */
export function declaredLength({ headers }: Request): number | undefined {
  const length = headers.get('content-length')
  return length === null || !/^\d+$/.test(length) || headers.has('transfer-encoding') ? undefined : Number(length)
}

/**
 * Reads no further than it must, and leaves the rest unread, which holds the client back until the server discards it. Cancelling Node's
 * stream would close the connection before the answer is sent.
 */
export async function readWithin(stream: Request['body'], bytesMax: number): Promise<FetchBody> {
  if (stream === null) return { kind: 'bytes', bytes: new Uint8Array() }
  const reader = stream.getReader()
  const chunks: Uint8Array[] = []
  let byteLength = 0
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return { kind: 'bytes', bytes: Buffer.concat(chunks) }
    byteLength += value.byteLength
    if (byteLength > bytesMax) return tooLarge(bytesMax)
    chunks.push(value)
  }
}

export type ResponseBody =
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
  /** There is more than the limit, or there may be. */
  | {
      readonly kind: 'more'
      readonly reader: ReadableStreamDefaultReader<Uint8Array>
      readonly chunks: Uint8Array[]
    }

/** Under a limit of 0 it is not read at all. */
export async function readBody({ body, bodyUsed }: Response, bytesMax: number): Promise<ResponseBody> {
  if (bodyUsed) throw new TypeError('the body of the response has been read')
  if (body === null) return { kind: 'bytes', bytes: new Uint8Array() }
  const reader = body.getReader()
  const chunks: Uint8Array[] = []
  let byteLength = 0
  while (bytesMax > 0 && byteLength <= bytesMax) {
    const chunk = await readChunk(reader)
    if (chunk === undefined) return { kind: 'bytes', bytes: Buffer.concat(chunks) }
    byteLength += chunk.byteLength
    chunks.push(chunk)
  }
  return { kind: 'more', reader, chunks }
}

/** Undefined at the end. */
export async function readChunk(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<Uint8Array | undefined> {
  const { done, value } = await reader.read()
  if (done) return undefined
  if (value instanceof Uint8Array) return value
  throw new TypeError('the body of a response must consist of bytes (got a stream of something else)')
}
