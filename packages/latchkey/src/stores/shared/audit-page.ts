/** Pages and the age of lines of the trail. */
import { misconfigured } from '../../ports/errors.ts'

/** No line younger than this is ever deleted by age: a mistake in a retention must not cost a day's trail. */
export const youngestMs: number = 24 * 3_600_000

type Part = string | number | bigint

/** Where a page ends: an instant in the store's own unit, and the number of a line. */
export function afterText(at: Part, lineId: Part): string {
  return `${at}.${lineId}`
}

export function positionOf(after: string): readonly [at: string, lineId: string] {
  const [, at, lineId] = /^(\d{1,17})\.(\d{1,18})$/.exec(after) ?? []
  if (at !== undefined && lineId !== undefined) return [at, lineId]
  throw misconfigured('auditRecords: after must be the next of the page before')
}
