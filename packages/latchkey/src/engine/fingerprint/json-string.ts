import { append, stopAtLoss, stopAtSyntax } from './json-cursor.ts'
import type { JsonCursor } from './json-cursor.ts'

// With the flag u, a surrogate that belongs to a pair is part of a code point and does not match.
const loneSurrogate = /\p{Surrogate}/u

export function hasLoneSurrogate(text: string): boolean {
  return loneSurrogate.test(text)
}

const quote = 0x22
const backslash = 0x5c

export function readString(cursor: JsonCursor): boolean {
  const { source, out, at: start, length: outStart } = cursor
  let at = start + 1
  let length = outStart
  out[length++] = quote
  for (;;) {
    const byte = source[at++] ?? 0
    if (byte === backslash) return readEscapedString(cursor)
    if (byte < 0x20) return stopAtSyntax(cursor)
    out[length++] = byte
    if (byte === quote) break
  }
  cursor.at = at
  cursor.length = length
  return true
}

/** JSON.stringify spells a well-formed string just as RFC 8785, section 3.2.2.2, asks. */
function readEscapedString(cursor: JsonCursor): boolean {
  const { source, at: start } = cursor
  const end = findEnd(source, start + 1)
  let value: string
  try {
    // A JSON text that starts with a quote is a string.
    value = JSON.parse(decode(source.subarray(start, end))) as string
  } catch {
    return stopAtSyntax(cursor)
  }
  if (hasLoneSurrogate(value)) return stopAtLoss(cursor, 'lone-surrogate')
  cursor.at = end
  return append(cursor, Buffer.from(JSON.stringify(value)))
}

function findEnd(source: Uint8Array, from: number): number {
  let at = from
  while (at < source.length && source[at] !== quote) at += source[at] === backslash ? 2 : 1
  return at + 1
}

export function decode(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
}
