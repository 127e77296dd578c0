/** The routes for servers with Node's request and response: node:http, Express, Fastify, Koa, Nest. */
import type { AdminHandler } from './routes.ts'

/** The members of Node's request that are used. */
export interface NodeAdminRequest extends AsyncIterable<unknown> {
  readonly method?: string | undefined
  /** Express cuts the path of the mount from `url` and keeps the whole here. */
  readonly originalUrl?: string | undefined
  readonly url?: string | undefined
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  /** What a body parser has made of the body. */
  readonly body?: unknown
}

/** The members of Node's response that are used. */
export interface NodeAdminResponse {
  statusCode: number
  setHeader(name: string, value: string): unknown
  end(chunk?: Uint8Array): unknown
}

export type NodeAdmin = (req: NodeAdminRequest, res: NodeAdminResponse) => void

/** Never rejects: a request that fetch cannot represent is answered 400. */
export function nodeAdmin(handler: AdminHandler): NodeAdmin {
  const door = nodeDoor(handler)
  return (req, res) => void door(req, res)
}

/** The same, and resolves when the answer was handed to Node. */
export function nodeDoor(handler: AdminHandler): (req: NodeAdminRequest, res: NodeAdminResponse) => Promise<void> {
  return async (req, res) => {
    const response = await answerTo(handler, req)
    res.statusCode = response.status
    for (const [name, value] of response.headers) res.setHeader(name, value)
    res.end(new Uint8Array(await response.arrayBuffer()))
  }
}

async function answerTo(handler: AdminHandler, req: NodeAdminRequest): Promise<Response> {
  try {
    return await handler(await requestOf(req))
  } catch {
    return new Response(null, { status: 400 })
  }
}

async function requestOf(req: NodeAdminRequest): Promise<Request> {
  const { method = 'GET' } = req
  const headers = new Headers()
  for (const [name, value] of Object.entries(req.headers)) {
    // HTTP/2 names the host in a field of its own (RFC 9113, section 8.3).
    if (name === ':authority') headers.set('host', String(value))
    else if (!name.startsWith(':')) for (const one of [value ?? []].flat()) headers.append(name, one)
  }
  // The name in the address decides nothing: Host is compared, as it was sent.
  const url = new URL(`http://admin.invalid${req.originalUrl ?? req.url ?? '/'}`)
  const body = method === 'GET' || method === 'HEAD' ? undefined : await bodyOf(req)
  return new Request(url, { method, headers, ...(body === undefined ? {} : { body }) })
}

/** More than a body may have by default: the handler says what is too much. */
const bytesMax = 64 * 1_024 * 1_024

async function bodyOf(req: NodeAdminRequest): Promise<Uint8Array<ArrayBuffer> | string> {
  if (req.body instanceof Uint8Array) return new Uint8Array(req.body)
  // A parser has read it. What is checked is what it says, and not its bytes.
  if (req.body !== undefined) return typeof req.body === 'string' ? req.body : JSON.stringify(req.body)
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of req) {
    if (!(chunk instanceof Uint8Array)) continue
    bytes += chunk.byteLength
    if (bytes > bytesMax) throw new RangeError('the body is too large')
    chunks.push(chunk)
  }
  return new Uint8Array(Buffer.concat(chunks))
}
