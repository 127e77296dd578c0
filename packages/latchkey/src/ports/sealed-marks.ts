/**
 * How a value that was encrypted above the store is distinguished from a plain one. No other writer can produce the marks: no HTTP message has a header
 * without a name, no JSON text begins with a control character. A mark is no proof: what carries one and does not open is unreadable.
 */
import type { Header, Outcome } from './outcome.ts'

/** The one header of a sealed outcome. */
export const sealedOutcomeHeaders: readonly Header[] = [['', '']]

export function isSealedOutcome({ headers }: Pick<Outcome, 'headers'>): boolean {
  return headers.length === 1 && headers[0]?.[0] === ''
}

/** The first character of a sealed text. A description that begins with it is given another first character before it is stored. */
export const sealedTextMark = '\u0001'

/** The one header of a sealed message. */
export const sealedMessageHeaders: Readonly<Record<string, string>> = { '': '' }

export function isSealedMessage({ headers }: { readonly headers: Readonly<Record<string, string>> }): boolean {
  return Object.hasOwn(headers, '')
}

/** What sealing adds to a payload at most: the headers and the aggregate move into it, and a wrapped key stands before it. */
export const sealedExtraBytesMax: number = 16 * 1_024
