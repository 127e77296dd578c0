/** A Hono request as the exchange wants to see it. */
import { fetchView } from '../capture/fetch-request.ts'
import type { BodyRead, RequestView } from '../exchange/request-view.ts'
import type { HonoContext } from './driver.ts'

const cure =
  'The body was read in a way that loses its bytes. Mount Latchkey before what reads it, or read it first with ' +
  'c.req.arrayBuffer(), c.req.text() or c.req.json(), which Hono caches.'

export function honoView<C extends HonoContext>(context: C): RequestView<C> {
  const view = fetchView(context.req.raw, context, () => Promise.resolve(new Uint8Array()))
  return { ...view, body: () => readBody(context) }
}

/** Hono caches what it read: the handler's c.req.json() works after this, and this works after a validator's. */
async function readBody<C extends HonoContext>({ req }: C): Promise<BodyRead> {
  const readAs = new Set(Object.keys(req.bodyCache))
  const hasBytes = ['arrayBuffer', 'bytes', 'text', 'blob'].some(way => readAs.has(way))
  // Parsed parts are written again with another boundary, so every retry would look like another request.
  const lost = readAs.size > 0 ? !hasBytes : req.raw.bodyUsed
  if (lost) return { kind: 'unreadable', cure }
  return { kind: 'bytes', bytes: new Uint8Array(await req.arrayBuffer()) }
}
