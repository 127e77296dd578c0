import { grown } from './json-cursor.ts'
import type { JsonCursor } from './json-cursor.ts'
import { areOrdinary, decode } from './json-string.ts'
import { keepMember } from './ordered-copy.ts'

// Per member, and read by ordered-copy.ts as well: two offsets into `out` (where it starts, where it ends), the beginning
// of its name as a number, which settles most comparisons at once, and the first object that begins in it or behind it.
const markSize = 4

// Up to this many members are sorted by insertion, which on most objects is several times faster than Array.sort with a
// comparator; beyond, its quadratic time would let a hostile body buy work.
const insertionMax = 32

export function pushMark(cursor: JsonCursor, memberStart: number, firstObject: number): void {
  const at = cursor.marksLength
  if (at + markSize > cursor.marks.length) cursor.marks = grown(cursor.marks, at + markSize)
  const { marks } = cursor
  marks[at] = memberStart
  marks[at + 1] = cursor.length
  marks[at + 2] = beginningOf(cursor, memberStart + 1)
  marks[at + 3] = firstObject
  cursor.marksLength = at + markSize
}

const noBeginning = -1

/**
 * The first four bytes of a name as a number that sorts as the name does, or `noBeginning` where bytes cannot tell: an
 * escape, or a character outside ASCII.
 */
function beginningOf({ out, outWords }: JsonCursor, start: number): number {
  const word = outWords.getInt32(start)
  if ((word & 0x80808080) === 0 && areOrdinary(word)) return word
  let beginning = 0
  for (let i = 0; i < 4; i++) {
    const byte = out[start + i] ?? 0
    if (byte === 0x5c || byte >= 0x80) return noBeginning
    if (byte === 0x22) return beginning << (8 * (4 - i))
    beginning = (beginning << 8) | byte
  }
  return beginning
}

/** Whether the member marked last comes after the one before it. */
export function lastMarkAscends(cursor: JsonCursor, firstMark: number): boolean {
  const last = cursor.marksLength - markSize
  return last === firstMark || compareMarks(cursor, last - markSize, last) < 0
}

const few = new Int32Array(insertionMax)

/**
 * Notes the members marked since `firstMark` in the order of their names (RFC 8785, section 3.2.3). False when a name
 * occurs twice.
 */
export function sortMembers(cursor: JsonCursor, firstMark: number): boolean {
  const count = (cursor.marksLength - firstMark) / markSize
  return count <= insertionMax ? sortFew(cursor, firstMark, count) : sortMany(cursor, firstMark)
}

function sortFew(cursor: JsonCursor, firstMark: number, count: number): boolean {
  for (let i = 0; i < count; i++) {
    const mark = firstMark + i * markSize
    let j = i
    for (; j > 0; j--) {
      const before = few[j - 1] ?? 0
      const difference = compareMarks(cursor, before, mark)
      if (difference < 0) break
      if (difference === 0) return false
      few[j] = before
    }
    few[j] = mark
  }
  for (let i = 0; i < count; i++) keepMember(cursor, few[i] ?? 0)
  return true
}

function sortMany(cursor: JsonCursor, firstMark: number): boolean {
  const order: number[] = []
  for (let mark = firstMark; mark < cursor.marksLength; mark += markSize) order.push(mark)
  order.sort((a, b) => compareMarks(cursor, a, b))
  if (order.some((mark, i) => i > 0 && compareMarks(cursor, order[i - 1] ?? 0, mark) === 0)) return false
  for (const mark of order) keepMember(cursor, mark)
  return true
}

function compareMarks(cursor: JsonCursor, a: number, b: number): number {
  const x = cursor.marks[a + 2] ?? 0
  const y = cursor.marks[b + 2] ?? 0
  return x === y || x === noBeginning || y === noBeginning ? compareNames(cursor, a, b) : x - y
}

/**
 * Orders two names by UTF-16 code units without decoding them. Bytes of UTF-8 order as code points do, which differs in
 * one case: a surrogate pair (first byte F0 and above) comes before U+E000 to U+FFFF (first byte EE, EF).
 */
function compareNames({ out, marks }: JsonCursor, a: number, b: number): number {
  const leftStart = marks[a] ?? 0
  const rightStart = marks[b] ?? 0
  for (let i = 1; ; i++) {
    const x = out[leftStart + i] ?? 0
    const y = out[rightStart + i] ?? 0
    // An escape does not sort by its own bytes.
    if (x === 0x5c || y === 0x5c) return compareDecoded(nameAt(out, leftStart), nameAt(out, rightStart))
    if (x !== y) return compareBytes(x, y)
    // Both names end here.
    if (x === 0x22) return 0
  }
}

function compareBytes(x: number, y: number): number {
  // The closing quote: the shorter name is the beginning of the longer one.
  if (x === 0x22) return -1
  if (y === 0x22) return 1
  return x >= 0xee && y >= 0xee && x >= 0xf0 !== y >= 0xf0 ? y - x : x - y
}

function compareDecoded(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}

function nameAt(out: Uint8Array, start: number): string {
  let end = start + 1
  while (out[end] !== 0x22) end += out[end] === 0x5c ? 2 : 1
  // We wrote it, hence it is a valid JSON string.
  return JSON.parse(decode(out.subarray(start, end + 1))) as string
}
