/** Sorts the members of an object by name. No order and no spelling of n names costs more than n log n steps and one read of their bytes. */
import type { JsonCursor } from './cursor.ts'
import { compareMarks, compareRest, listMember, markSize, noBeginning } from './member-order.ts'

/** Lists the members marked since `firstMark` in the order of their names. False when a name occurs twice. */
export function sortMembers(cursor: JsonCursor, firstMark: number): boolean {
  const count = (cursor.marksLength - firstMark) / markSize
  const sorted = sortMarks(cursor, { first: firstMark, count, size: markSize })
  if (sorted === undefined) return false
  for (let i = 0; i < count; i++) listMember(cursor, sorted[i] ?? 0)
  return true
}

export interface Marks {
  /** Position of the first one in `marks`. */
  readonly first: number
  readonly count: number
  /** Distance from one mark to the next. */
  readonly size: number
}

// Up to this many names are sorted by insertion, which is fastest for few. With more, moving them takes quadratic time, and every
// comparison reads the beginning that long names share.
const insertionMax = 8

/** Marks in the order found so far, and how many bytes each name shares with the one before it in its run. */
let order = new Int32Array(64)
let shared = new Int32Array(64)
/** A merge writes its order and its shared lengths here. */
let mergedOrder = new Int32Array(64)
let mergedShared = new Int32Array(64)
/** The beginning of a name and its mark's number, combined into one number for the runtime's own sort. */
let keys = new Float64Array(64)
const numbers = 2 ** 21

function growTo(length: number): void {
  order = new Int32Array(length)
  shared = new Int32Array(length)
  mergedOrder = new Int32Array(length)
  mergedShared = new Int32Array(length)
  keys = new Float64Array(length)
}

/** The marks in the order of their names, at the start of an array that is valid until the next call. Undefined: a name occurs twice. */
export function sortMarks(cursor: JsonCursor, marks: Marks): Int32Array | undefined {
  const { first, count, size } = marks
  if (count > order.length) growTo(2 * count)
  if (count > insertionMax && orderByBeginning(cursor, marks)) return sortEqualBeginnings(cursor, count)
  for (let i = 0; i < count; i++) order[i] = first + i * size
  return sortGroup(cursor, 0, count) ? order : undefined
}

/** False where a name has no comparable beginning, or there are too many names. */
function orderByBeginning({ marks }: JsonCursor, { first, count, size }: Marks): boolean {
  if (count > numbers) return false
  for (let i = 0; i < count; i++) {
    const beginning = marks[first + i * size + 2] ?? 0
    if (beginning === noBeginning) return false
    keys[i] = beginning * numbers + i
  }
  keys.subarray(0, count).sort()
  for (let i = 0; i < count; i++) {
    const key = keys[i] ?? 0
    order[i] = first + (key - Math.floor(key / numbers) * numbers) * size
  }
  return true
}

function sortEqualBeginnings(cursor: JsonCursor, count: number): Int32Array | undefined {
  for (let start = 0; start < count;) {
    const beginning = Math.floor((keys[start] ?? 0) / numbers)
    let end = start + 1
    while (end < count && Math.floor((keys[end] ?? 0) / numbers) === beginning) end++
    if (!sortGroup(cursor, start, end)) return undefined
    start = end
  }
  return order
}

function sortGroup(cursor: JsonCursor, start: number, end: number): boolean {
  return end - start <= insertionMax ? insertEach(cursor, start, end) : mergeAll(cursor, start, end)
}

function insertEach(cursor: JsonCursor, start: number, end: number): boolean {
  for (let i = start + 1; i < end; i++) {
    const mark = order[i] ?? 0
    let low = start
    let high = i
    // By halves: names in reverse order would otherwise be compared each with each.
    while (low < high) {
      const middle = (low + high) >> 1
      const difference = compareMarks(cursor, order[middle] ?? 0, mark)
      if (difference === 0) return false
      if (difference < 0) low = middle + 1
      else high = middle
    }
    for (let j = i; j > low; j--) order[j] = order[j - 1] ?? 0
    order[low] = mark
  }
  return true
}

/**
 * Merges runs of one, two, four … names. Each name remembers how many bytes it shares with the last one taken: of two names the one
 * that shares more comes first without being read, so comparisons do not read the beginning of long names again and again.
 */
function mergeAll(cursor: JsonCursor, start: number, end: number): boolean {
  shared.fill(0, start, end)
  for (let width = 1; width < end - start; width *= 2) {
    for (let left = start; left < end; left += 2 * width) {
      const right = Math.min(left + width, end)
      if (!mergeRuns(cursor, left, { right, end: Math.min(right + width, end) })) return false
    }
    order.set(mergedOrder.subarray(start, end), start)
    shared.set(mergedShared.subarray(start, end), start)
  }
  return true
}

/** Two adjacent runs: the first ends where the second begins. */
interface Runs {
  readonly right: number
  readonly end: number
}

function mergeRuns(cursor: JsonCursor, start: number, runs: Runs): boolean {
  const { end } = runs
  let { right } = runs
  const leftEnd = right
  let left = start
  let leftShared = 0
  let rightShared = 0
  for (let to = start; to < end; to++) {
    let takesLeft = right === end || (left < leftEnd && leftShared > rightShared)
    mergedShared[to] = takesLeft ? leftShared : rightShared
    if (leftShared === rightShared && left < leftEnd && right < end) {
      cursor.common = leftShared
      const difference = compareRest(cursor, order[left] ?? 0, order[right] ?? 0)
      if (difference === 0) return false
      takesLeft = difference < 0
      if (takesLeft) rightShared = cursor.common
      else leftShared = cursor.common
    }
    mergedOrder[to] = (takesLeft ? order[left++] : order[right++]) ?? 0
    if (takesLeft) leftShared = shared[left] ?? 0
    else rightShared = shared[right] ?? 0
  }
  return true
}
