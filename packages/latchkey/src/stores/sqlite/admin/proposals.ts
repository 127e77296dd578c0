/** Acts that wait for a second person, and acts on many rows. */
import type {
  BulkMove,
  NewBulk,
  NewEntry,
  StoredBulk,
  StoredBulkRow,
  StoredProposal,
} from '../../../ports/faculties/admin.ts'
import {
  type BulkColumns,
  bulkOf,
  type BulkRowColumns,
  bulkRowOf,
  type ProposalColumns,
  proposalOf,
} from '../../shared/admin/rows.ts'
import type { Handle } from '../connection/handle.ts'
import { readNowMs, storable } from '../keys/row.ts'
import { rowsAs } from './columns.ts'
import { addEntry } from './entries.ts'

const columns = `p.proposal_id, p.id AS key_id, p.scope, p.operation, p.act, p.detail, p.by, p.reason, p.evidence, p.fence, p.version,
  p.at_ms, p.expires_at_ms - ?1 AS expires_in_ms, p.state, p.decided_by`
const listSql = `SELECT ${columns} FROM latchkey_proposals AS p ORDER BY (p.state = 'open') DESC, p.seq DESC LIMIT ?2`
const oneSql = `SELECT ${columns} FROM latchkey_proposals AS p WHERE p.proposal_id = ?2`
const closeSql = `
  UPDATE latchkey_proposals SET state = ?2, decided_by = ?3, detail = ''
  WHERE proposal_id = ?1 AND state = 'open' AND expires_at_ms > ?4`

export function proposals(handle: Handle, limit: number): readonly StoredProposal[] {
  return rowsAs<ProposalColumns>(handle, listSql, [readNowMs(handle), limit]).map(proposalOf)
}

export function proposal(handle: Handle, proposalId: string): StoredProposal | undefined {
  const [row] = rowsAs<ProposalColumns>(handle, oneSql, [readNowMs(handle), proposalId])
  return row && proposalOf(row)
}

interface Closing {
  readonly to: 'approved' | 'rejected' | 'void'
  readonly by: string
}

/** Only an open one that has not expired. */
export function closeProposal(handle: Handle, proposalId: string, { to, by }: Closing): boolean {
  return handle.run(closeSql, [proposalId, to, storable(by), readNowMs(handle)]) === 1
}

export function closeWithEntry(handle: Handle, proposalId: string, to: 'rejected' | 'void', entry: NewEntry): boolean {
  if (!closeProposal(handle, proposalId, { to, by: entry.by })) return false
  addEntry(handle, entry)
  return true
}

const planSql = `
  INSERT INTO latchkey_bulk (bulk_id, act, by, reason, detail, at_ms, valid_until_ms, total) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)`
const planRowSql = `
  INSERT INTO latchkey_bulk_rows (bulk_id, at, target, fence, version, detail) VALUES (?1, ?2, ?3, ?4, ?5, ?6)`
const bulkSql = `
  SELECT b.bulk_id, b.act, b.by, b.reason, b.detail, b.state, b.at_ms, b.total, b.valid_until_ms - ?1 AS valid_in_ms,
    (SELECT COUNT(*) FROM latchkey_bulk_rows AS r WHERE r.bulk_id = b.bulk_id AND r.result IS NOT NULL) AS finished
  FROM latchkey_bulk AS b WHERE b.bulk_id = ?2`
const rowsSql = `
  SELECT r.at, r.target, r.fence, r.version, r.detail, r.result FROM latchkey_bulk_rows AS r
  WHERE r.bulk_id = ?1 AND r.at > ?2 ORDER BY r.at LIMIT ?3`
const resultSql = 'UPDATE latchkey_bulk_rows SET result = ?3 WHERE bulk_id = ?1 AND at = ?2 AND result IS NULL'
const moveSql = 'UPDATE latchkey_bulk SET state = ?3 WHERE bulk_id = ?1 AND state IN (SELECT value FROM json_each(?2))'

export function planBulk(handle: Handle, plan: NewBulk, entry: NewEntry): void {
  const { bulkId, act, by, reason, detail, validInMs, rows } = plan
  const nowMs = readNowMs(handle)
  const texts = [storable(by), storable(reason), storable(detail)]
  handle.run(planSql, [bulkId, act, ...texts, nowMs, Math.ceil(nowMs + validInMs), rows.length])
  for (const [at, row] of rows.entries()) {
    const { fence = null, version = null } = row.expected ?? {}
    handle.run(planRowSql, [bulkId, at, row.id, fence, version, row.detail ?? null])
  }
  addEntry(handle, entry)
}

export function bulk(handle: Handle, bulkId: string): StoredBulk | undefined {
  const [row] = rowsAs<BulkColumns>(handle, bulkSql, [readNowMs(handle), bulkId])
  return row && bulkOf(row)
}

export function bulkRows(
  handle: Handle,
  bulkId: string,
  { limit, after = -1 }: { readonly limit: number; readonly after?: number },
): readonly StoredBulkRow[] {
  return rowsAs<BulkRowColumns>(handle, rowsSql, [bulkId, after, limit]).map(bulkRowOf)
}

export function moveBulk(handle: Handle, bulkId: string, { from, to, entry }: MoveWithEntry): boolean {
  const isMoved = handle.run(moveSql, [bulkId, JSON.stringify(from), to]) === 1
  if (isMoved && entry !== undefined) addEntry(handle, entry)
  return isMoved
}

interface MoveWithEntry extends BulkMove {
  readonly entry: NewEntry | undefined
}

export function setBulkResult(handle: Handle, bulkId: string, at: number, result: string): void {
  handle.run(resultSql, [bulkId, at, result])
}
