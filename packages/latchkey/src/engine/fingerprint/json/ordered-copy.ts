/**
 * Puts the members of all objects into their order in one copy at the end. Rewriting each object when it closes would copy a
 * member once for every object around it.
 */
import { grown, roomBefore, roomFor, slack, wordsOf } from './cursor.ts'
import type { JsonCursor } from './cursor.ts'

// Per object: where its first member starts in `out`, where its last one ends, the first object behind it, and where its
// members stand in `orders`, or `inOrder`.
const objectSize = 4
const inOrder = -1

// Per member where it starts and ends in `out`, and the first object that begins in it or behind it.
const memberSize = 3

/** What is known of an object when it opens; the rest comes when it closes. */
export function openObject(cursor: JsonCursor): number {
  const object = cursor.objectsLength
  if (object + objectSize > cursor.objects.length) cursor.objects = grown(cursor.objects, object + objectSize)
  cursor.objects[object] = cursor.length
  cursor.objectsLength = object + objectSize
  return object
}

/** `firstMember`: where its members were kept, if they are out of order. */
export function closeObject(cursor: JsonCursor, object: number, firstMember: number | undefined): void {
  const { objects } = cursor
  objects[object + 1] = cursor.length
  objects[object + 2] = cursor.objectsLength
  objects[object + 3] = firstMember ?? inOrder
}

/** Keeps what is marked at `mark` (see member-order.ts) as the next member of the object that is closing. */
export function keepMember(cursor: JsonCursor, mark: number): void {
  const at = cursor.ordersLength
  if (at + memberSize > cursor.orders.length) cursor.orders = grown(cursor.orders, at + memberSize)
  const { orders, marks } = cursor
  orders[at] = marks[mark] ?? 0
  orders[at + 1] = marks[mark + 1] ?? 0
  orders[at + 2] = marks[mark + 3] ?? 0
  cursor.ordersLength = at + memberSize
}

/** The other `out`: the copy is written into it, and the two change places. */
let spare: Buffer = Buffer.alloc(0)
let spareWords = new DataView(spare.buffer)
let spareLength = 0
/** What is copied next. */
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

/** What is left up to `end`. `firstObject`: the first that begins in it or behind it. */
function copySpan(cursor: JsonCursor, firstObject: number, end: number): void {
  const { objects, objectsLength } = cursor
  let object = firstObject
  while (object < objectsLength && (objects[object] ?? 0) < end) {
    // What is inside an object in order may be out of order.
    object = objects[object + 3] === inOrder ? object + objectSize : copyObject(cursor, object)
  }
  copyBytes(cursor, end)
}

/** The first object behind it. */
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

/** From here on, a call into the runtime is faster than a loop. */
const nativeMin = 64

/** Four bytes at a time, and up to `slack` past the end, which the next copy writes over. */
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
