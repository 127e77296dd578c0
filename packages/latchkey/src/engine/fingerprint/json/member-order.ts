import { grown } from './cursor.ts'
import type { JsonCursor } from './cursor.ts'
import { beginningOf, compareMarks } from './name-order.ts'
import { keepMember } from './ordered-copy.ts'
import { sortMarks } from './sort-marks.ts'

// Per member, and read by ordered-copy.ts as well: two offsets into `out` (where it starts, where it ends), the beginning
// of its name as a number, which settles most comparisons at once, and the first object that begins in it or behind it.
const markSize = 4

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

/** Whether the member marked last comes after the one before it. */
export function lastMarkAscends(cursor: JsonCursor, firstMark: number): boolean {
  const last = cursor.marksLength - markSize
  return last === firstMark || compareMarks(cursor, last - markSize, last) < 0
}

/**
 * Notes the members marked since `firstMark` in the order of their names (RFC 8785, section 3.2.3). False when a name
 * occurs twice.
 */
export function sortMembers(cursor: JsonCursor, firstMark: number): boolean {
  const count = (cursor.marksLength - firstMark) / markSize
  const sorted = sortMarks(cursor, { first: firstMark, count, size: markSize })
  if (sorted === undefined) return false
  for (let i = 0; i < count; i++) keepMember(cursor, sorted[i] ?? 0)
  return true
}
