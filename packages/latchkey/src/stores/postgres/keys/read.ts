/** Reads of a key's row, alone and in a batch. */
import type { KeyRecord, Store } from '../../../ports/store.ts'
import { recordOf, type OutcomeRow, type RawNumber, type RecordRow } from '../../shared/record-row.ts'
import type { Run } from '../connection/statement.ts'
import { keyWithOutcome, outcomeColumns, recordColumns } from '../sql/fragments.ts'
import { batchSettings } from '../sql/functions.ts'
import type { Dialect } from '../sql/names.ts'

export type KeyRow = RecordRow & OutcomeRow & { readonly now_ms: RawNumber }

export function readCall(sql: Dialect, run: Run): Pick<Store, 'read'> {
  const text = readStatement(sql)
  return {
    async read(id) {
      const [row] = await run<KeyRow>(text, [id])
      return row && keyRecord(row)
    },
  }
}

export function keyRecord(row: KeyRow): KeyRecord {
  return recordOf(row, Number(row.now_ms))
}

export function readStatement(sql: Dialect): string {
  return `select ${recordColumns(sql)}, ${outcomeColumns} from ${keyWithOutcome(sql, '$1')}`
}

/** By a function, so that the plan is kept. Without what lies apart: a large outcome is not among its columns. */
export function readManyStatement(sql: Dialect): string {
  return `select ${recordColumns(sql)}, k.outcome as outcome_packed from ${sql.functions.readMany}($1::uuid[]) k`
}

/** Nothing but to be seen: running, finished with its outcome at hand, or unreadable. A large outcome is not. */
export function isPlain(record: KeyRecord): boolean {
  if (record.state === 'unreadable') return !record.expired
  if (record.state === 'in_progress') return record.leaseLeftMs > 0
  return record.state === 'completed' && !record.expired && record.outcome !== undefined
}

export function readManyFunction(sql: Dialect): string {
  return `create function ${sql.functions.readMany}(ids uuid[]) returns setof ${sql.keys} ${batchSettings} as $latchkey$
begin
  return query select k.* from pg_catalog.unnest(ids) a (id) join ${sql.keys} k on k.id = a.id;
end $latchkey$;

`
}
