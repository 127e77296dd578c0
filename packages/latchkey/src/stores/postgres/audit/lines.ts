/**
 * The line of the trail, in the statement that ends an execution: it is inserted from the row that the guarded update returned, or not at all. Where
 * no lines are wanted, every fragment here is empty.
 */
import { state } from '../sql/fragments.ts'
import type { Dialect } from '../sql/names.ts'

const lineColumns = 'at, key_id, fence, scope, operation, what, status, fingerprint'

/** For a RETURNING: the whole row `k`, as it was written. */
export function lineReturned({ recordsLines }: Dialect): string {
  return recordsLines ? ', k as line' : ''
}

/** A common table expression that follows others. `from` has what `lineReturned` returned; `status` is that of the answer, where the statement knows it. */
export function writeLines(sql: Dialect, from: string, status = 'null'): string {
  if (!sql.recordsLines) return ''
  return `, lines_written as (
      ${insertLines(sql, from, status)}
    )`
}

export function insertLines(sql: Dialect, from: string, status = 'null'): string {
  return `insert into ${sql.auditRecords} (${lineColumns})
      select ${sql.now}, (f.line).id, (f.line).fence, (f.line).scope, (f.line).operation, ${whatHappened},
        case when (f.line).state = ${state.completed} then coalesce(${status}::smallint, ${statusOf('(f.line).outcome')}) end,
        (f.line).fingerprint
      from ${from} f`
}

const whatHappened = `case (f.line).state when ${state.completed} then 'completed' when ${state.unknown} then 'unknown'
          when ${state.pending} then 'resumed' else case when (f.line).parked_at is null then 'failed' else 'parked' end end`

/** Of an outcome that is packed into its row; see `packOutcome`. */
function statusOf(packed: string): string {
  return `(pg_catalog.get_byte(${packed}, 1) * 256 + pg_catalog.get_byte(${packed}, 2))::smallint`
}

/** What stands for each value in a function. */
interface FreshLine {
  readonly id: string
  readonly fence: string
  readonly now: string
  readonly scope: string
  readonly operation: string
  readonly fingerprint: string
}

/** For a function that has just recorded an atomic operation. */
export function insertFreshLine(sql: Dialect, line: FreshLine, outcome: string): string {
  if (!sql.recordsLines) return ''
  return `
      insert into ${sql.auditRecords} (${lineColumns})
      values (${line.now}, ${line.id}, ${line.fence}, ${line.scope}, ${line.operation}, 'completed', ${statusOf(outcome)},
        ${line.fingerprint});
     `
}
