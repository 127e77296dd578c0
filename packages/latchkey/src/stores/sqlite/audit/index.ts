/** The trail: lines that outlive their rows. */
import type {
  AuditedEnd,
  AuditLine,
  AuditPage,
  AuditQuery,
  AuditRecords,
} from '../../../ports/faculties/audit-records.ts'
import type { Misuse, TakenLines } from '../../../ports/faculties/audit-records.ts'
import type { OwnerResult, Store } from '../../../ports/store.ts'
import { afterText, positionOf, youngestMs } from '../../shared/audit-page.ts'
import { pageSize } from '../../shared/listing.ts'
import type { Database } from '../connection/database.ts'
import type { Handle } from '../connection/handle.ts'
import type { SqliteRow } from '../driver.ts'
import { readNowMs, storable } from '../keys/row.ts'

export function sqliteAuditRecords<Tx>(database: Database, recording: () => Store<Tx>): AuditRecords<Tx> {
  return {
    recording,
    addMisuse: misuse => database.write(handle => addMisuse(handle, misuse)),
    page: query => database.read(handle => page(handle, query)),
    expire: which => database.write(handle => expire(handle, which)),
    take: which => database.write(handle => take(handle, which)),
    handedOver: taken => database.write(handle => handedOver(handle, taken)),
    giveBack: ({ run }) => database.write(handle => void handle.run(giveBackSql, [run])),
  }
}

const addSql = `
  INSERT INTO latchkey_audit_records (at_ms, id, fence, scope, operation, what, fingerprint)
  VALUES (?2, ?1, COALESCE((SELECT k.fence FROM latchkey_keys AS k WHERE k.id = ?1), 0), ?3, ?4, 'misuse', ?5)`

function addMisuse(handle: Handle, { identity: { id, scope, operation }, fingerprint }: Misuse): void {
  handle.run(addSql, [id, readNowMs(handle), storable(scope), storable(operation), fingerprint])
}

const columns = 'r.seq, r.at_ms, r.what, r.scope, r.operation, r.id, r.fence, r.status, r.fingerprint'

/** Only what is asked for is compared, so that the index that fits is used. */
export function pageSql({ scope, id, fromMs, after }: Omit<AuditQuery, 'limit'>): string {
  const conditions = [
    ...(scope === undefined ? [] : ['r.scope = ?1']),
    ...(id === undefined ? [] : ['r.id = ?2']),
    ...(fromMs === undefined ? [] : ['r.at_ms >= ?3']),
    ...(after === undefined ? [] : ['(r.at_ms, r.seq) > (?4, ?5)']),
  ]
  return `SELECT ${columns} FROM latchkey_audit_records AS r WHERE ${['1', ...conditions].join(' AND ')}
    ORDER BY r.at_ms, r.seq LIMIT ?6`
}

function page(handle: Handle, query: AuditQuery): AuditPage {
  const size = pageSize(query.limit)
  const { scope, id, fromMs, after } = query
  const [atMs, seq] = after === undefined ? [null, null] : positionOf(after).map(Number)
  const rows = handle.rows(pageSql(query), [
    ...[scope === undefined ? null : storable(scope), id ?? null, fromMs ?? null],
    ...[atMs ?? null, seq ?? null, size + 1],
  ])
  const last = rows[size - 1]
  const next = rows.length > size && last !== undefined ? afterText(Number(last.at_ms), Number(last.seq)) : undefined
  return { lines: rows.slice(0, size).map(lineOf), next }
}

function lineOf(row: SqliteRow): AuditLine {
  return {
    lineId: String(row.seq),
    atMs: Number(row.at_ms),
    // The table allows nothing else.
    what: row.what as AuditedEnd,
    scope: row.scope === null ? undefined : String(row.scope),
    operation: String(row.operation),
    id: String(row.id),
    fence: Number(row.fence),
    status: row.status === null ? undefined : Number(row.status),
    // The table is STRICT: bytes or null.
    fingerprint: (row.fingerprint as Uint8Array | null) ?? undefined,
  }
}

const expireSql = `
  DELETE FROM latchkey_audit_records WHERE seq IN (
    SELECT r.seq FROM latchkey_audit_records AS r WHERE r.at_ms < ?1 ORDER BY r.at_ms, r.seq LIMIT ?2)`

function expire(handle: Handle, { olderThanMs, limit }: { olderThanMs: number; limit: number }): number {
  return handle.run(expireSql, [Math.floor(readNowMs(handle) - Math.max(olderThanMs, youngestMs)), limit])
}

const leaseSql = `
  UPDATE latchkey_audit_sink SET run = run + 1, locked_until_ms = ?1 + ?2
  WHERE (locked_until_ms IS NULL OR locked_until_ms <= ?1) AND EXISTS (SELECT 1 FROM latchkey_audit_records)
  RETURNING run`
const oldestSql = `SELECT ${columns} FROM latchkey_audit_records AS r ORDER BY r.at_ms, r.seq LIMIT ?1`

function take(
  handle: Handle,
  { limit, leaseMs }: { readonly limit: number; readonly leaseMs: number },
): TakenLines | undefined {
  const [lease] = handle.rows(leaseSql, [readNowMs(handle), Math.ceil(leaseMs)])
  return lease && { run: Number(lease.run), lines: handle.rows(oldestSql, [limit]).map(lineOf) }
}

const giveBackSql = 'UPDATE latchkey_audit_sink SET locked_until_ms = NULL WHERE run = ?1'
const endLeaseSql = `${giveBackSql} AND locked_until_ms IS NOT NULL`

function handedOver(handle: Handle, { run, lines }: TakenLines): OwnerResult {
  if (handle.run(endLeaseSql, [run]) === 0) return 'claim-lost'
  for (const { lineId } of lines) handle.run('DELETE FROM latchkey_audit_records WHERE seq = ?1', [Number(lineId)])
  return 'written'
}
