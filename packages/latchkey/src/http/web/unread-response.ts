/**
 * Reads what a response was constructed from, without reading the response. Hono's Node server replaces the global `Response` by a
 * class of its own. It only remembers its arguments, and becomes a real response (streams, a second set of headers: some hundred
 * microseconds of a busy process) once its body or headers are read. The arguments are enough to store, and the object can then be sent
 * untouched.
 */
import type { Header } from '../../ports/outcome.ts'

/** The arguments of a response's constructor. */
export interface ResponseParts {
  readonly status: number
  readonly body: string | Uint8Array | null
  /** Names in lower case and in their order, as `Headers` lists them. */
  readonly headers: readonly Header[]
}

/** The member that holds the arguments; undefined where the global `Response` is the platform's own. */
interface PartsMember {
  readonly of: typeof Response
  readonly symbol: symbol | undefined
}

let member: PartsMember | undefined

/** Undefined where the response has to be read. */
export function partsOf(response: Response): ResponseParts | undefined {
  const parts = rememberedBy(response)
  if (parts === undefined) return undefined
  const [status, body, given] = parts
  if (typeof status !== 'number' || !isAvailable(body)) return undefined
  const headers = listOf(given)
  return headers === undefined ? undefined : { status, body, headers }
}

function rememberedBy(response: object): unknown[] | undefined {
  if (member?.of !== Response) member = { of: Response, symbol: findMember() }
  if (member.symbol === undefined) return undefined
  // A response has no such member in its type; the value is checked below.
  const parts = (response as { readonly [symbol: symbol]: unknown })[member.symbol]
  return Array.isArray(parts) && parts.length === 3 ? parts : undefined
}

/** Found by its value, so that the responses of a version that stores it elsewhere, or in another form, are simply read. */
function findMember(): symbol | undefined {
  const headers = { 'x-probe': 'probe' }
  const probe = new Response('probe', { status: 299, headers })
  return Object.getOwnPropertySymbols(probe).find(symbol => {
    const value: unknown = Reflect.get(probe, symbol)
    return (
      Array.isArray(value) && value.length === 3 && value[0] === 299 && value[1] === 'probe' && value[2] === headers
    )
  })
}

function isAvailable(body: unknown): body is ResponseParts['body'] {
  return typeof body === 'string' || body === null || body instanceof Uint8Array
}

function listOf(given: unknown): readonly Header[] | undefined {
  if (given === undefined || given === null) return []
  if (given instanceof Headers) return [...given]
  if (typeof given !== 'object' || Array.isArray(given)) return undefined
  const list: Header[] = []
  for (const [name, value] of Object.entries(given)) {
    const header: Header = [name.toLowerCase(), value]
    if (!isPlain(header)) return undefined
    list.push(header)
  }
  if (list.length < 2) return list
  // `Headers` lists names in their order, and joins those that differ in case only.
  list.sort(([a], [b]) => (a < b ? -1 : 1))
  return list.some(([name], i) => name === list[i + 1]?.[0]) ? undefined : list
}

const token = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/
const visible = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/

/** Whether `Headers` accepts the field without rewriting it. */
export function isPlain([name, value]: readonly [string, unknown]): boolean {
  return token.test(name) && typeof value === 'string' && visible.test(value)
}
