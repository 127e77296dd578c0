/** The head of a captured response: sent as far as the handler can tell, and still in our hands. */
import type { Held } from './held-response.ts'
import { nodeError } from './response-buffer.ts'

/** As Node's: frameworks count on its throwing once the head is out. */
export function writeHead(held: Held, status: unknown, [reason, headers]: readonly unknown[]): void {
  if (held.headSent) throw headersSent('writeHead')
  const { target } = held
  target.statusCode = statusOf(status)
  if (typeof reason === 'string') target.statusMessage = reason
  const given = typeof reason === 'string' ? headers : (headers ?? reason)
  if (Array.isArray(given)) setListed(held, given)
  else if (typeof given === 'object' && given !== null) {
    for (const [name, value] of Object.entries(given)) {
      // The values are checked by setHeader, as Node's writeHead does.
      if (value !== undefined) target.setHeader(name, value as Value)
    }
  }
  held.headSent = true
}

function statusOf(status: unknown): number {
  const code = Number(status) | 0
  if (code >= 100 && code <= 999) return code
  throw nodeError(RangeError, 'ERR_HTTP_INVALID_STATUS_CODE', `Invalid status code: ${String(status)}`)
}

type Value = string | string[]

/** A flat list of names and values, or a list of pairs: Node takes both. A repeated name keeps all values. */
function setListed({ target }: Held, headers: readonly unknown[]): void {
  const pairs: [string, Value][] = Array.isArray(headers[0])
    ? (headers as unknown[][]).map(([name, value]) => [String(name), value as Value]) // checked by setHeader
    : Array.from({ length: headers.length >> 1 }, (_, at) => [String(headers[2 * at]), headers[2 * at + 1] as Value]) // likewise
  const merged = new Map<string, [string, Value]>()
  for (const [name, value] of pairs) {
    const known = merged.get(name.toLowerCase())
    merged.set(name.toLowerCase(), known === undefined ? [name, value] : [known[0], [known[1], value].flat()])
  }
  for (const [name, value] of merged.values()) target.setHeader(name, value)
}

export function headersSent(what: string): Error {
  return nodeError(Error, 'ERR_HTTP_HEADERS_SENT', `Cannot ${what} after the headers are sent to the client`)
}
