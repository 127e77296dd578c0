import type { JsonCursor } from './json-cursor.ts'
import { decode } from './json-string.ts'

// Per member three offsets into `out` (where it starts, where its quoted name ends, where it ends) and the beginning of
// its name as a number, which settles most comparisons at once.
const markSize = 4

// Up to this many members are sorted by insertion, which on most objects is several times faster than Array.sort with a
// comparator; beyond, its quadratic time would let a hostile body buy work.
const insertionMax = 32

export function pushMark(cursor: JsonCursor, memberStart: number, nameEnd: number): void {
  const { marksLength } = cursor
  if (marksLength + markSize > cursor.marks.length) {
    const larger = new Int32Array(2 * cursor.marks.length)
    larger.set(cursor.marks)
    cursor.marks = larger
  }
  const { marks } = cursor
  marks[marksLength] = memberStart
  marks[marksLength + 1] = nameEnd
  marks[marksLength + 2] = cursor.length
  marks[marksLength + 3] = beginningOf(cursor.out, memberStart + 1)
  cursor.marksLength = marksLength + markSize
}

const noBeginning = -1

/**
 * The first three bytes of a name as a number that sorts as the name does, or `noBeginning` where bytes cannot tell.
 */
function beginningOf(out: Uint8Array, start: number): number {
  let beginning = 0
  for (let i = 0; i < 3; i++) {
    const byte = out[start + i] ?? 0
    if (byte === 0x5c || byte >= 0xee) return noBeginning
    if (byte === 0x22) return beginning << (8 * (3 - i))
    beginning = (beginning << 8) | byte
  }
  return beginning
}

/** Whether the member marked last comes after the one before it. */
export function lastMarkAscends(cursor: JsonCursor, firstMark: number): boolean {
  const last = cursor.marksLength - markSize
  return last === firstMark || compareMarks(cursor, last - markSize, last) < 0
}

/**
 * Puts the members marked since `firstMark` into the order of their names (RFC 8785, section 3.2.3). False when a name
 * occurs twice.
 */
export function sortMembers(cursor: JsonCursor, firstMark: number): boolean {
  const order: number[] = []
  for (let mark = firstMark; mark < cursor.marksLength; mark += markSize) order.push(mark)
  const distinct = order.length <= insertionMax ? sortFew(cursor, order) : sortMany(cursor, order)
  if (distinct) rewrite(cursor, firstMark, order)
  return distinct
}

function sortFew(cursor: JsonCursor, order: number[]): boolean {
  for (let i = 1; i < order.length; i++) {
    const mark = order[i] ?? 0
    let j = i
    for (; j > 0; j--) {
      const before = order[j - 1] ?? 0
      const difference = compareMarks(cursor, before, mark)
      if (difference < 0) break
      if (difference === 0) return false
      order[j] = before
    }
    order[j] = mark
  }
  return true
}

function sortMany(cursor: JsonCursor, order: number[]): boolean {
  order.sort((a, b) => compareMarks(cursor, a, b))
  return order.every((mark, i) => i === 0 || compareMarks(cursor, order[i - 1] ?? 0, mark) !== 0)
}

function rewrite(cursor: JsonCursor, firstMark: number, order: readonly number[]): void {
  const { out, marks } = cursor
  const start = marks[firstMark] ?? 0
  const sorted = Buffer.allocUnsafe(cursor.length - start)
  let length = 0
  for (const mark of order) {
    if (length > 0) sorted[length++] = 0x2c
    const end = marks[mark + 2] ?? 0
    for (let at = marks[mark] ?? 0; at < end; at++) sorted[length++] = out[at] ?? 0
  }
  out.set(sorted, start)
}

function compareMarks(cursor: JsonCursor, a: number, b: number): number {
  const x = cursor.marks[a + 3] ?? 0
  const y = cursor.marks[b + 3] ?? 0
  return x === y || x === noBeginning || y === noBeginning ? compareNames(cursor, a, b) : x - y
}

/**
 * Orders two names by UTF-16 code units without decoding them. Bytes of UTF-8 order as code points do, which differs in
 * one case: a surrogate pair (first byte F0 and above) comes before U+E000 to U+FFFF (first byte EE, EF).
 */
function compareNames({ out, marks }: JsonCursor, a: number, b: number): number {
  let left = marks[a] ?? 0
  let right = marks[b] ?? 0
  const end = marks[a + 1] ?? 0
  // Equal bytes up to the end of one name are equal to the end of the other, since both end with a quote.
  while (++left < end) {
    const x = out[left] ?? 0
    const y = out[++right] ?? 0
    // An escape does not sort by its own bytes.
    if (x === 0x5c || y === 0x5c) return compareDecoded(nameOf(out, marks, a), nameOf(out, marks, b))
    if (x === y) continue
    // The closing quote: the shorter name is the beginning of the longer one.
    if (x === 0x22) return -1
    if (y === 0x22) return 1
    return x >= 0xee && y >= 0xee && x >= 0xf0 !== y >= 0xf0 ? y - x : x - y
  }
  return 0
}

function compareDecoded(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}

function nameOf(out: Uint8Array, marks: Int32Array, mark: number): string {
  // We wrote it, hence it is a valid JSON string.
  return JSON.parse(decode(out.subarray(marks[mark], marks[mark + 1]))) as string
}
