/**
 * Responses whose bytes are at hand. Hono's Node server puts a `Response` of its own in the global place that only remembers what
 * it was made of, and becomes a real one (streams, a second set of headers: some hundred microseconds of a busy process) once
 * somebody reads it. What it remembers is enough to store, and the object can then be sent untouched.
 */
import type { Header } from '../../ports/outcome.ts'

/** As given to the constructor. */
export interface MadeOf {
  readonly status: number
  readonly body: string | Uint8Array | null
  /** Names in lower case and in their order, as `Headers` lists them. */
  readonly headers: readonly Header[]
}

/** Where such a response keeps its parts, or undefined where the global `Response` is the platform's own. */
interface Place {
  readonly of: typeof Response
  readonly slot: symbol | undefined
}

let place: Place | undefined

/** Undefined: only reading the response tells what is in it. */
export function madeOf(response: Response): MadeOf | undefined {
  const parts = partsOf(response)
  if (parts === undefined) return undefined
  const [status, body, given] = parts
  if (typeof status !== 'number' || !isAtHand(body)) return undefined
  const headers = listOf(given)
  return headers === undefined ? undefined : { status, body, headers }
}

function partsOf(response: object): unknown[] | undefined {
  if (place?.of !== Response) place = { of: Response, slot: findSlot() }
  if (place.slot === undefined) return undefined
  // A response has no such member in its type; whatever is there is looked at first.
  const parts = (response as { readonly [slot: symbol]: unknown })[place.slot]
  return Array.isArray(parts) && parts.length === 3 ? parts : undefined
}

/** Found by looking for what went in, so that a version that keeps it elsewhere, or otherwise, is simply read. */
function findSlot(): symbol | undefined {
  const headers = { 'x-probe': 'probe' }
  const probe = new Response('probe', { status: 299, headers })
  return Object.getOwnPropertySymbols(probe).find(symbol => {
    const kept: unknown = Reflect.get(probe, symbol)
    return Array.isArray(kept) && kept.length === 3 && kept[0] === 299 && kept[1] === 'probe' && kept[2] === headers
  })
}

function isAtHand(body: unknown): body is MadeOf['body'] {
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

/** What `Headers` takes as it stands: no check of it is lost, and nothing of it is rewritten. */
export function isPlain([name, value]: readonly [string, unknown]): boolean {
  return token.test(name) && typeof value === 'string' && visible.test(value)
}
