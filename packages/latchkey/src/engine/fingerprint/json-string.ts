import { append, stopAtLoss, stopAtSyntax } from './json-cursor.ts'
import type { JsonCursor } from './json-cursor.ts'

// With the flag u, a surrogate that belongs to a pair is part of a code point and does not match.
const loneSurrogate = /\p{Surrogate}/u

export function hasLoneSurrogate(text: string): boolean {
  return loneSurrogate.test(text)
}

const quote = 0x22
const backslash = 0x5c

/** 1: stands for itself. One look instead of three comparisons, for the bytes that bodies are mostly made of. */
const ordinary = new Uint8Array(256).fill(1, 0x20)
ordinary[quote] = 0
ordinary[backslash] = 0

/** The escapes that RFC 8785 keeps, by their second byte: section 3.2.2.2. */
const keptEscape = new Uint8Array(256)
for (const byte of Buffer.from('"\\bfnrt')) keptEscape[byte] = 1

/**
 * Whether four bytes are all ordinary, in one calculation: `(x - n) & ~x` has the top bit of a byte set where that byte is below n.
 * A borrow may reach a byte above one that is not ordinary; the bytes are then looked at one by one anyway.
 */
export function areOrdinary(word: number): boolean {
  const quotes = word ^ 0x22222222
  const backslashes = word ^ 0x5c5c5c5c
  const below =
    ((word - 0x20202020) & ~word) | ((quotes - 0x01010101) & ~quotes) | ((backslashes - 0x01010101) & ~backslashes)
  return (below & 0x80808080) === 0
}

export function readString(cursor: JsonCursor): boolean {
  const { source, sourceWords, out, outWords } = cursor
  let at = cursor.at + 1
  let length = cursor.length
  out[length++] = quote
  for (;;) {
    // At the end of the text stands a zero, which is not ordinary.
    let word = sourceWords.getInt32(at, true)
    while (areOrdinary(word)) {
      outWords.setInt32(length, word, true)
      length += 4
      at += 4
      word = sourceWords.getInt32(at, true)
    }
    let byte = source[at++] ?? 0
    while (ordinary[byte] === 1) {
      out[length++] = byte
      byte = source[at++] ?? 0
    }
    if (byte === quote) break
    if (byte !== backslash) return stopAtSyntax(cursor)
    const escaped = source[at++] ?? 0
    if (keptEscape[escaped] !== 1) return readRespelledString(cursor)
    out[length++] = backslash
    out[length++] = escaped
  }
  out[length++] = quote
  cursor.at = at
  cursor.length = length
  return true
}

/** JSON.stringify spells a well-formed string just as RFC 8785, section 3.2.2.2, asks. */
function readRespelledString(cursor: JsonCursor): boolean {
  const { source, at: start } = cursor
  const end = findEnd(cursor, start + 1)
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

function findEnd({ source, end }: JsonCursor, from: number): number {
  let at = from
  while (at < end && source[at] !== quote) at += source[at] === backslash ? 2 : 1
  return Math.min(at + 1, end)
}

export function decode(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
}
