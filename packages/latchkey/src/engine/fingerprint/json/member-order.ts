/**
 * The order of an object's members (RFC 8785, section 3.2.3): by name, in UTF-16 code units. Members are marked while they are read and compared by
 * the bytes of their names; sort-marks.ts sorts them. One copy at the end puts all objects in order: rewriting each object when it closes would
 * copy a member once for every object around it.
 */
import { grown, roomBefore, roomFor, slack, wordsOf } from './cursor.ts'
import type { JsonCursor } from './cursor.ts'
import { areOrdinary, escapedUnit } from './scalar.ts'

// A mark is four numbers: where the member starts and ends in `out`, the beginning of its name as a number, which decides most comparisons
// at once, and the first object that begins in the member or after it.
export const markSize = 4

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

/** Whether the last marked member sorts after the one before it. */
export function lastMarkAscends(cursor: JsonCursor, firstMark: number): boolean {
  const last = cursor.marksLength - markSize
  return last === firstMark || compareMarks(cursor, last - markSize, last) < 0
}

const quote = 0x22
const backslash = 0x5c
export const noBeginning = -1

/**
 * The first four bytes of a name as a number that sorts as the name does, or `noBeginning` where bytes do not show the order: at an
 * escape, or at a character outside ASCII.
 */
function beginningOf({ out, outWords }: JsonCursor, start: number): number {
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

const beginningBytes = 4

export function compareMarks(cursor: JsonCursor, a: number, b: number): number {
  cursor.common = 0
  return compareRest(cursor, a, b)
}

/**
 * Compares the names of two marks whose first `cursor.common` bytes are known to be equal. Sets `cursor.common` to the number of bytes
 * they share.
 */
export function compareRest(cursor: JsonCursor, a: number, b: number): number {
  if (cursor.common >= beginningBytes) return compareBytes(cursor, a, b)
  const x = cursor.marks[a + 2] ?? 0
  const y = cursor.marks[b + 2] ?? 0
  if (x === noBeginning || y === noBeginning) return compareBytes(cursor, a, b)
  if (x === y) {
    // The beginning of a shorter name is padded with zeros.
    cursor.common = (x & 0xff) === 0 ? 0 : beginningBytes
    return compareBytes(cursor, a, b)
  }
  cursor.common = Math.clz32(x ^ y) >> 3
  return x - y
}

/**
 * Reads only what the names share and decodes nothing. UTF-8 bytes sort as code points do, which differs from UTF-16 in one case: see
 * `compareUnits`.
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

/** The length of the escape or byte that both names have here; 0 where they differ or end. */
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

/** Less than any unit: a name that is the beginning of a longer one comes first. */
const nameEnd = -1

/** The meaning of an escape, the end of the name, or a byte. */
function unitAt(out: Uint8Array, at: number): number {
  const byte = out[at] ?? 0
  if (byte === backslash) return escapedUnit(out, at)
  return byte === quote ? nameEnd : byte
}

/** A surrogate pair (first byte F0 and above) comes before U+E000 to U+FFFF (first byte EE, EF). */
function compareUnits(x: number, y: number): number {
  return x >= 0xee && y >= 0xee && x >= 0xf0 !== y >= 0xf0 ? y - x : x - y
}

// Per object: where its first member starts in `out`, where its last one ends, the first object after it, and where its members are
// listed in `orders`, or `inOrder`.
const objectSize = 4
const inOrder = -1

// Per listed member: where it starts and ends in `out`, and the first object that begins in it or after it.
const memberSize = 3

/** Records where an object begins; `closeObject` records the rest. Returns its position in `objects`. */
export function openObject(cursor: JsonCursor): number {
  const object = cursor.objectsLength
  if (object + objectSize > cursor.objects.length) cursor.objects = grown(cursor.objects, object + objectSize)
  cursor.objects[object] = cursor.length
  cursor.objectsLength = object + objectSize
  return object
}

/** `firstMember`: where its members are listed in `orders`; undefined when they are in order already. */
export function closeObject(cursor: JsonCursor, object: number, firstMember: number | undefined): void {
  const { objects } = cursor
  objects[object + 1] = cursor.length
  objects[object + 2] = cursor.objectsLength
  objects[object + 3] = firstMember ?? inOrder
}

/** Lists the marked member as the next one of the object that is closing. */
export function listMember(cursor: JsonCursor, mark: number): void {
  const at = cursor.ordersLength
  if (at + memberSize > cursor.orders.length) cursor.orders = grown(cursor.orders, at + memberSize)
  const { orders, marks } = cursor
  orders[at] = marks[mark] ?? 0
  orders[at + 1] = marks[mark + 1] ?? 0
  orders[at + 2] = marks[mark + 3] ?? 0
  cursor.ordersLength = at + memberSize
}

/** The copy is written into this buffer, which then takes the place of `out`. */
let spare: Buffer = Buffer.alloc(0)
let spareWords = new DataView(spare.buffer)
let spareLength = 0
/** Where the next copy starts in `out`. */
let from = 0

export function putInOrder(cursor: JsonCursor): void {
  if (cursor.ordersLength === 0) return
  const { out, outWords } = cursor
  spare = roomFor(spare, cursor.length + slack)
  spareWords = wordsOf(spare, spareWords)
  spareLength = roomBefore
  from = roomBefore
  copySpan(cursor, 0, cursor.length)
  cursor.out = spare
  cursor.outWords = spareWords
  spare = out
  spareWords = outWords
}

/** Copies up to `end`. `firstObject`: the first object that begins in this span or after it. */
function copySpan(cursor: JsonCursor, firstObject: number, end: number): void {
  const { objects, objectsLength } = cursor
  let object = firstObject
  while (object < objectsLength && (objects[object] ?? 0) < end) {
    // An object in order may contain objects that are not.
    object = objects[object + 3] === inOrder ? object + objectSize : copyObject(cursor, object)
  }
  copyBytes(cursor, end)
}

/** Returns the first object after it. */
function copyObject(cursor: JsonCursor, object: number): number {
  const { orders, objects } = cursor
  const start = objects[object] ?? 0
  const end = objects[object + 1] ?? 0
  copyBytes(cursor, start)
  const until = spareLength + end - start
  for (let at = objects[object + 3] ?? 0; ; at += memberSize) {
    from = orders[at] ?? 0
    copySpan(cursor, orders[at + 2] ?? 0, orders[at + 1] ?? 0)
    if (spareLength >= until) break
    spare[spareLength++] = 0x2c
  }
  from = end
  return objects[object + 2] ?? 0
}

/** From this length on, a call into the runtime is faster than a loop. */
const nativeMin = 64

/** Copies four bytes at a time, and up to `slack` past the end, which the next copy overwrites. */
function copyBytes({ out, outWords }: JsonCursor, end: number): void {
  if (end - from >= nativeMin) {
    out.copy(spare, spareLength, from, end)
  } else {
    const target = spareWords
    const shift = spareLength - from
    for (let at = from; at < end; at += 4) target.setInt32(at + shift, outWords.getInt32(at, true), true)
  }
  spareLength += end - from
  from = end
}
