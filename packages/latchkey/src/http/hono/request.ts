/** The exchange's view of a Hono request. */
import { declaredLength, readWithin } from '../web/body.ts'
import { fetchView } from '../web/request.ts'
import { type BodyRead, type RequestView, tooLarge } from '../exchange/request.ts'
import type { HonoContext, HonoRequest } from './driver.ts'

const cure =
  'The body was read in a way that loses its bytes. Mount Latchkey before what reads it, or read it first with ' +
  'c.req.arrayBuffer(), c.req.text() or c.req.json(), which Hono caches.'

export function honoView<C extends HonoContext>(context: C): RequestView<C> {
  return fetchView(context.req.raw, context, (_, bytesMax) => readBody(context.req, bytesMax))
}

/** Hono caches what it read: the handler's c.req.json() works after this, and this works after a validator's. */
async function readBody(req: HonoRequest, bytesMax: number): Promise<BodyRead> {
  const { bodyCache } = req
  const declared = declaredLength(req.raw)
  if (declared !== undefined && declared > bytesMax) return tooLarge(bytesMax)
  // What a validator's c.req.json() leaves behind. For arrayBuffer(), Hono would put it through a Response.
  if ('text' in bodyCache && !('arrayBuffer' in bodyCache)) return bytesOf(Buffer.from(await req.text()))
  // Hono would write parsed parts again with another boundary, so every retry would look like another request.
  if (isEmpty(bodyCache) ? req.raw.bodyUsed : !hasBytes(bodyCache)) return { kind: 'unreadable', cure }
  if (declared === undefined && isEmpty(bodyCache)) return readUnsized(req, bytesMax)
  const bytes = new Uint8Array(await req.arrayBuffer())
  cacheText(bodyCache, bytes)
  return bytesOf(bytes)
}

async function readUnsized({ raw, bodyCache }: HonoRequest, bytesMax: number): Promise<BodyRead> {
  const read = await readWithin(raw.body, bytesMax)
  if (read.kind === 'too-large') return read
  const { bytes } = read
  const { buffer, byteOffset, byteLength } = bytes
  Object.assign(bodyCache, { arrayBuffer: Promise.resolve(buffer.slice(byteOffset, byteOffset + byteLength)) })
  cacheText(bodyCache, bytes)
  return bytesOf(bytes)
}

function bytesOf(bytes: Uint8Array): BodyRead {
  return { kind: 'bytes', bytes }
}

function isEmpty(cache: object): boolean {
  for (const _ in cache) return false
  return true
}

function hasBytes(cache: object): boolean {
  return 'arrayBuffer' in cache || 'bytes' in cache || 'text' in cache || 'blob' in cache
}

/** Past this, decoding for a handler that may not need the text costs more than the detour it saves. */
const textBytesMax = 16 * 1024
const utf8 = new TextDecoder()

/** Beside the bytes, for the c.req.json() that nearly every handler begins with: Hono would get the text through a Response. */
function cacheText(cache: { text?: unknown }, bytes: Uint8Array): void {
  if (bytes.byteLength <= textBytesMax) cache.text ??= Promise.resolve(utf8.decode(bytes))
}
