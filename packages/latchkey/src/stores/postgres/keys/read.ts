/** Reads of a key's row, alone and in a batch. */
import type { KeyRecord, Store } from '../../../ports/store.ts'
import { recordOf, type OutcomeRow, type RawNumber, type RecordRow } from '../../shared/record-row.ts'
import type { Batching } from '../batch/batched-calls.ts'
import {
  type Answered,
  type Fields,
  prepared,
  preparedForMany,
  type PreparedStatement,
} from '../connection/prepared.ts'
import type { RunStatement } from '../connection/statement.ts'
import { type Column, isWrittenUuid, uuids } from '../sql/columns.ts'
import { batchColumns, keyWithOutcome, outcomeColumns, recordColumns } from '../sql/fragments.ts'
import { batchSettings } from '../sql/functions.ts'
import type { Dialect } from '../sql/names.ts'

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

/** The parameter of `readManyStatement`. */
export const idColumn: Column<string> = uuids(id => id)

export function batchedRead({ sql, single, together }: Batching): Pick<Store, 'read'> {
  const batched = together<string, KeyRecord | undefined>({
    name: 'read',
    keyOf: id => id,
    mayShare: () => true,
    sendAlone: single.read,
    many: preparedForMany(readManyStatement(sql), [idColumn]),
    resultsOf(ids, answer) {
      const found = recordsById(answer)
      return ids.map(id => {
        const record = found.get(id)
        // A large outcome is stored apart.
        return record?.state === 'completed' && record.outcome === undefined ? single.read(id) : record
      })
    },
  })
  return { read: id => (isWrittenUuid(id) ? batched(id) : single.read(id)) }
}

export function recordsById({ rows }: Answered): ReadonlyMap<string, KeyRecord> {
  const records = new Map<string, KeyRecord>()
  for (const fields of rows) {
    const record = recordOfFields(fields)
    records.set(record.id, record)
  }
  return records
}

/** The columns of `batchColumns`, in their order: text, or numbers where the driver has read them. */
type BatchFields = readonly [
  ...[id: string, scope: string, operation: string, state: string, recovery: string, fingerprint: string],
  ...[fence: string, claimId: string, attempts: string, crashes: string, lockedUntil: string | null],
  ...[dueAt: string | null, createdAt: string, completedAt: string | null, expiresAt: string, parkedAt: string | null],
  ...[tombstone: string | null, goneAt: string | null, description: string | null, lastErrorCode: string | null],
  ...[now: string, packed: string | null],
]

export function recordOfFields(row: Fields): KeyRecord {
  const fields = row as BatchFields
  return keyRecord({
    id: fields[0],
    scope: fields[1],
    operation: fields[2],
    state: fields[3],
    recovery: fields[4],
    fingerprint: Buffer.from(fields[5], 'hex'),
    fence: fields[6],
    claim_id: fields[7],
    attempts: fields[8],
    crashes: fields[9],
    locked_until_ms: fields[10],
    due_at_ms: fields[11],
    created_at_ms: fields[12],
    completed_at_ms: fields[13],
    expires_at_ms: fields[14],
    parked_at_ms: fields[15],
    tombstone_ms: fields[16],
    gone_at_ms: fields[17],
    description: fields[18],
    last_error_code: fields[19],
    now_ms: fields[20],
    outcome_packed: fields[21] === null ? null : Buffer.from(fields[21], 'hex'),
  })
}

export function keyRecord(row: KeyRow): KeyRecord {
  return recordOf(row, Number(row.now_ms))
}

export function readStatement(sql: Dialect): string {
  return `select ${recordColumns(sql)}, ${outcomeColumns} from ${keyWithOutcome(sql, '$1')}`
}

/** By a function, so that the session caches the plan. Large outcomes are stored apart and are not among its columns. */
export function readManyStatement(sql: Dialect): PreparedStatement {
  return prepared('read', `select ${batchColumns(sql)} from ${sql.functions.readMany}($1::uuid[]) k`)
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
