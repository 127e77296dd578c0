/** The head of a captured response: sent as far as the handler can tell, and still in our hands. */
import type { NodeResponse } from './node-types.ts'
import type { Overrides } from './overrides.ts'
import { nodeError } from './response-buffer.ts'

export interface VirtualHead {
  readonly sent: boolean
  /** Sends it, the way Node does when the first byte comes without a `writeHead`. */
  ensureSent(): void
}

/** What may not be called once the head is out; Node throws there, and frameworks count on it. */
const guarded = ['setHeader', 'setHeaders', 'appendHeader', 'removeHeader']

export function virtualHead(res: NodeResponse, own: Overrides): VirtualHead {
  let sent = false
  for (const name of guarded) {
    const real = own.original(name)
    if (real === undefined) continue
    own.method(name, (...args: unknown[]) => {
      if (sent) throw headersSent(name)
      const result = real(...args)
      return result === undefined ? undefined : res
    })
  }
  own.method('writeHead', (status: unknown, reason?: unknown, headers?: unknown) => {
    if (sent) throw headersSent('writeHead')
    res.statusCode = statusOf(status)
    if (typeof reason === 'string') res.statusMessage = reason
    for (const [name, value] of entriesOf(typeof reason === 'string' ? headers : (headers ?? reason))) {
      res.setHeader(name, value)
    }
    sent = true
    return res
  })
  // Looked up each time: a hook that the handler's own middleware laid over writeHead has to run.
  const ensureSent = () => {
    if (!sent) Reflect.apply(Reflect.get(res, 'writeHead'), res, [res.statusCode])
  }
  own.method('flushHeaders', ensureSent)
  return {
    get sent() {
      return sent
    },
    ensureSent,
  }
}

function statusOf(status: unknown): number {
  const code = Number(status) | 0
  if (code >= 100 && code <= 999) return code
  throw nodeError(RangeError, 'ERR_HTTP_INVALID_STATUS_CODE', `Invalid status code: ${String(status)}`)
}

type Value = string | string[]

/** An object, a flat list of names and values, or a list of pairs: Node takes all three. A repeated name keeps all values. */
function entriesOf(headers: unknown): [string, Value][] {
  if (typeof headers !== 'object' || headers === null) return []
  // The values are checked by setHeader, as Node's writeHead does.
  if (!Array.isArray(headers))
    return Object.entries(headers).filter(([, value]) => value !== undefined) as [string, Value][]
  const pairs: [string, Value][] = Array.isArray(headers[0])
    ? headers.map((pair: unknown[]) => [String(pair[0]), pair[1] as Value]) // checked by setHeader
    : Array.from({ length: headers.length >> 1 }, (_, at) => [String(headers[2 * at]), headers[2 * at + 1] as Value]) // likewise
  const merged = new Map<string, [string, Value]>()
  for (const [name, value] of pairs) {
    const known = merged.get(name.toLowerCase())
    merged.set(name.toLowerCase(), known === undefined ? [name, value] : [known[0], [known[1], value].flat()])
  }
  return [...merged.values()]
}

function headersSent(what: string): Error {
  return nodeError(Error, 'ERR_HTTP_HEADERS_SENT', `Cannot ${what} after the headers are sent to the client`)
}
