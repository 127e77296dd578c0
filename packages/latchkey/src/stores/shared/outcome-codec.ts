/**
 * An outcome's headers as text. JSON keeps order, repeated names, U+0000 and lone surrogates (both escaped), which a text
 * column could not hold raw; a json column would reorder and reject.
 */
import { LatchkeyError } from '../../ports/errors.ts'
import type { Header } from '../../ports/outcome.ts'

export function headersToText(headers: readonly Header[]): string {
  return JSON.stringify(headers)
}

export function headersFromText(text: string): readonly Header[] {
  const value: unknown = JSON.parse(text)
  if (!Array.isArray(value) || !value.every(isHeader)) {
    throw new LatchkeyError('invariant', `stored headers are not a list of [name, value] pairs: ${text.slice(0, 80)}`)
  }
  return value
}

function isHeader(value: unknown): value is Header {
  return Array.isArray(value) && value.length === 2 && typeof value[0] === 'string' && typeof value[1] === 'string'
}
