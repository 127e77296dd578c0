/** The order of names that RFC 8785, section 3.2.3, asks for: by UTF-16 code units, told from the canonical bytes. */
import type { JsonCursor } from './cursor.ts'
import { areOrdinary, escapedUnit } from './string.ts'

const quote = 0x22
const backslash = 0x5c
export const noBeginning = -1

/**
 * The first four bytes of a name as a number that sorts as the name does, or `noBeginning` where bytes cannot tell: an
 * escape, or a character outside ASCII.
 */
export function beginningOf({ out, outWords }: JsonCursor, start: number): number {
  const word = outWords.getInt32(start)
  if ((word & 0x80808080) === 0 && areOrdinary(word)) return word
  let beginning = 0
  for (let i = 0; i < 4; i++) {
    const byte = out[start + i] ?? 0
    if (byte === backslash || byte >= 0x80) return noBeginning
    if (byte === quote) return beginning << (8 * (4 - i))
    beginning = (beginning << 8) | byte
  }
  return beginning
}

/** How many bytes of a name its beginning holds. */
const beginningBytes = 4

export function compareMarks(cursor: JsonCursor, a: number, b: number): number {
  cursor.common = 0
  return compareRest(cursor, a, b)
}

/**
 * Compares the names of two marks of which the first `common` bytes are known to be equal, and leaves there how many they share
 * before they differ.
 */
export function compareRest(cursor: JsonCursor, a: number, b: number): number {
  if (cursor.common >= beginningBytes) return compareBytes(cursor, a, b)
  const x = cursor.marks[a + 2] ?? 0
  const y = cursor.marks[b + 2] ?? 0
  if (x === noBeginning || y === noBeginning) return compareBytes(cursor, a, b)
  if (x === y) {
    // A shorter name has zeros at its end.
    cursor.common = (x & 0xff) === 0 ? 0 : beginningBytes
    return compareBytes(cursor, a, b)
  }
  cursor.common = Math.clz32(x ^ y) >> 3
  return x - y
}

/**
 * Nothing is decoded: this reads what the names share, and no more. Bytes of UTF-8 order as code points do, which differs in one
 * case: see `compareUnits`.
 */
function compareBytes(cursor: JsonCursor, a: number, b: number): number {
  const { out, outWords, marks } = cursor
  let x = (marks[a] ?? 0) + 1 + cursor.common
  let y = (marks[b] ?? 0) + 1 + cursor.common
  for (;;) {
    let word = outWords.getInt32(x, true)
    while (word === outWords.getInt32(y, true) && areOrdinary(word)) {
      x += 4
      y += 4
      word = outWords.getInt32(x, true)
    }
    const length = equalLength(out, x, y)
    if (length === 0) break
    x += length
    y += length
  }
  cursor.common = x - (marks[a] ?? 0) - 1
  return compareUnits(unitAt(out, x), unitAt(out, y))
}

const letterU = 0x75

/** How long the same character, escape or byte is that both names have here; 0 where they differ or end. */
function equalLength(out: Uint8Array, x: number, y: number): number {
  const byte = out[x]
  if (byte !== out[y] || byte === quote) return 0
  if (byte !== backslash) return 1
  const second = out[x + 1]
  if (second !== out[y + 1]) return 0
  if (second !== letterU) return 2
  // Only control characters are escaped by number, and their first two digits are 0.
  return out[x + 4] === out[y + 4] && out[x + 5] === out[y + 5] ? 6 : 0
}

/** The shorter name is the beginning of the longer one, and comes first. */
const nameEnd = -1

/** An escape as what it means, the end of the name, or a byte. */
function unitAt(out: Uint8Array, at: number): number {
  const byte = out[at] ?? 0
  if (byte === backslash) return escapedUnit(out, at)
  return byte === quote ? nameEnd : byte
}

/** A surrogate pair (first byte F0 and above) comes before U+E000 to U+FFFF (first byte EE, EF). */
function compareUnits(x: number, y: number): number {
  return x >= 0xee && y >= 0xee && x >= 0xf0 !== y >= 0xf0 ? y - x : x - y
}
