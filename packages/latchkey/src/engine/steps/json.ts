/** Outcomes and step values as JSON: what goes in is what a resume or a replay gets. */
import { LatchkeyError } from '../../ports/errors.ts'
import type { Header, Outcome } from '../../ports/outcome.ts'

/** The outcome of a phased operation: a status and a JSON value. */
export function json(status: number, value: unknown, headers: readonly Header[] = []): Outcome {
  const text: string | undefined = JSON.stringify(value)
  if (text === undefined) return { status, headers, body: new Uint8Array(), version: 0 }
  return { status, headers: [['content-type', 'application/json'], ...headers], body: Buffer.from(text), version: 0 }
}

/** Steps and inputs live in narrow rows that are read at every resume; large values belong in tables of your own. */
export const jsonBytesMax = 65_536

/** JSON text of at most 64 KiB; undefined stays undefined. Throws a sentence that names what was too large or not JSON. */
export function boundedJson(what: string, value: unknown): string | undefined {
  if (value === undefined) return undefined
  const text: string | undefined = JSON.stringify(value)
  if (text === undefined) throw new LatchkeyError('misconfigured', `${what} is a ${typeof value}, which is not JSON`)
  const bytes = Buffer.byteLength(text)
  if (bytes <= jsonBytesMax) return text
  throw new LatchkeyError(
    'misconfigured',
    `${what} is ${bytes} bytes of JSON, more than ${jsonBytesMax}: store a reference instead`,
  )
}

export function fromJson(text: string | undefined): unknown {
  return text === undefined ? undefined : JSON.parse(text)
}
