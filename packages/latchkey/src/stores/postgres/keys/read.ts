/** Reads of a key's row, alone and in a batch. */
import type { KeyRecord, Store } from '../../../ports/store.ts'
import { recordOf, type OutcomeRow, type RawNumber, type RecordRow } from '../../shared/record-row.ts'
import type { Batching } from '../batch/batching.ts'
import { prepared } from '../connection/prepared.ts'
import { rowsOf, type RunStatement } from '../connection/statement.ts'
import type { PgResult } from '../driver.ts'
import { uuidArray } from '../sql/binary-array.ts'
import { keyWithOutcome, outcomeColumns, recordColumns } from '../sql/fragments.ts'
import { batchSettings } from '../sql/functions.ts'
import type { Dialect } from '../sql/names.ts'
import { isWrittenUuid } from '../sql/values.ts'

export type KeyRow = RecordRow & OutcomeRow & { readonly now_ms: RawNumber }

export function readCall(sql: Dialect, run: RunStatement): Pick<Store, 'read'> {
  const text = readStatement(sql)
  return {
    async read(id) {
      const [row] = await run<KeyRow>(text, [id])
      return row && keyRecord(row)
    },
  }
}

export function batchedRead({ sql, send, single, together }: Batching): Pick<Store, 'read'> {
  const statement = prepared(readManyStatement(sql))
  const batched = together<string, KeyRecord | undefined>({
    name: 'read',
    keyOf: id => id,
    mayShare: () => true,
    sendAlone: single.read,
    async sendMany(ids) {
      const found = recordsById(await send(statement, [uuidArray(ids)]))
      return ids.map(id => {
        const record = found.get(id)
        // A large outcome is stored apart.
        return record?.state === 'completed' && record.outcome === undefined ? single.read(id) : record
      })
    },
  })
  return { read: id => (isWrittenUuid(id) ? batched(id) : single.read(id)) }
}

export function recordsById(result: PgResult): ReadonlyMap<string, KeyRecord> {
  return new Map(rowsOf<KeyRow>(result).map(row => [row.id, keyRecord(row)]))
}

export function keyRecord(row: KeyRow): KeyRecord {
  return recordOf(row, Number(row.now_ms))
}

export function readStatement(sql: Dialect): string {
  return `select ${recordColumns(sql)}, ${outcomeColumns} from ${keyWithOutcome(sql, '$1')}`
}

/** By a function, so that the session caches the plan. Large outcomes are stored apart and are not among its columns. */
export function readManyStatement(sql: Dialect): string {
  return `select ${recordColumns(sql)}, k.outcome as outcome_packed from ${sql.functions.readMany}($1::uuid[]) k`
}

/** It cannot be granted, and all of it is here: running, finished with its outcome, or unreadable. A large outcome is stored apart. */
export function needsNoDecision(record: KeyRecord): boolean {
  if (record.state === 'unreadable') return !record.expired
  if (record.state === 'in_progress') return record.leaseLeftMs > 0
  return record.state === 'completed' && !record.expired && record.outcome !== undefined
}

export function readManyFunction(sql: Dialect): string {
  return `create function ${sql.functions.readMany}(ids uuid[]) returns setof ${sql.keys} ${batchSettings} as $latchkey$
begin
  return query select k.* from ${sql.keys} k where k.id = any (ids);
end $latchkey$;

`
}
