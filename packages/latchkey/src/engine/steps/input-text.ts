/** The input of phased and deferred work as it is stored. */
import { type InputLimit, LatchkeyError } from '../../ports/errors.ts'
import { jsonDepthMax } from '../fingerprint/json/canonical-json.ts'
import { canonicalizeValue } from '../fingerprint/json/canonical-value.ts'
import { jsonBytesMax } from './json.ts'

export type InputText =
  | { readonly kind: 'text'; readonly text: string }
  /** It comes from a client, which gets a 413. */
  | { readonly kind: 'too-large'; readonly limit: InputLimit }

/** Throws `misconfigured` on what JSON cannot carry, such as a BigInt or a value that refers to itself. */
export function inputText(name: string, input: unknown): InputText {
  // JSON.stringify recurses as deep as the value and ends in a stack overflow.
  const isDeep = isDeeperThan(jsonDepthMax, input)
  if (isDeep && !refersToItself(input)) return tooLarge(jsonDepthMax, 'levels')
  const text = stringify(name, input)
  return Buffer.byteLength(text) > jsonBytesMax ? tooLarge(jsonBytesMax, 'bytes') : { kind: 'text', text }
}

function tooLarge(max: number, unit: InputLimit['unit']): InputText {
  return { kind: 'too-large', limit: { max, unit } }
}

function isDeeperThan(levels: number, value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (levels === 0) return true
  for (const member of Object.values(value)) if (isDeeperThan(levels - 1, member)) return true
  return false
}

function refersToItself(value: unknown): boolean {
  try {
    return canonicalizeValue(value).kind !== 'too-deep'
  } catch {
    return true
  }
}

function stringify(name: string, input: unknown): string {
  if (input === undefined) return 'null'
  let text: string | undefined
  try {
    text = JSON.stringify(input)
  } catch (cause) {
    throw new LatchkeyError('misconfigured', `${name}: the input is not JSON`, { cause })
  }
  if (text !== undefined) return text
  throw new LatchkeyError('misconfigured', `${name}: the input is a ${typeof input}, which is not JSON`)
}
