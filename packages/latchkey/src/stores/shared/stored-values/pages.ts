/** Pages over several tables: each is read by its key to the end, then the next one. */
import { misconfigured } from '../../../ports/errors.ts'
import type { ValuePage } from '../../../ports/faculties/values.ts'
import { type ValueRow, type ValueTableName, valueTableNames, valuesOf } from './rows.ts'

/** A page begins after this key. */
export interface PageStart {
  readonly table: ValueTableName
  readonly id: string
  readonly number: number
}

/** `firstId`: what sorts before every identity. */
export function pageStart(after: string | undefined, firstId: string): PageStart {
  const [name, id = firstId, number = '-1'] = after?.split('/') ?? [valueTableNames[0]]
  const table = valueTableNames.find(each => each === name)
  if (table === undefined) throw misconfigured(`there is no page after ${JSON.stringify(after)}`)
  return { table, id, number: Number(number) }
}

/** The parameters of a page: where it begins, and how many rows. */
export function pageValues({ table, id, number }: PageStart, limit: number): readonly (string | number)[] {
  if (table !== 'received') return [id, number, limit]
  if (number === -1) return ['', '', limit]
  // Written by `receivedId`.
  return [...(JSON.parse(Buffer.from(id, 'base64url').toString()) as [string, string]), limit]
}

/** `rows`: of the page that begins at `start`, at most `limit`. */
export function valuePage({ table }: PageStart, rows: readonly ValueRow[], limit: number): ValuePage {
  const values = rows.flatMap(row => valuesOf(table, row))
  const last = rows.at(-1)
  if (last !== undefined && rows.length === limit) return { values, next: `${table}/${last.id}/${last.number}` }
  return { values, next: valueTableNames[valueTableNames.indexOf(table) + 1] }
}
