/** The audit of all that operators do: added to, and read. */
import type { EntryQuery, NewEntry, OperatorEntry } from '../../../ports/faculties/admin.ts'
import { type EntryColumns, entryOf } from '../../shared/admin/rows.ts'
import type { Handle } from '../connection/handle.ts'
import { readNowMs, storable } from '../keys/row.ts'
import { rowsAs } from './columns.ts'

const actedSql = 'SELECT seq FROM latchkey_audit_details WHERE request_id = ?1 AND refused IS NULL'
const auditSql = `
  INSERT INTO latchkey_audit (id, act, by, reason, detail, at_ms, scope) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) RETURNING seq`
const detailSql = `
  INSERT INTO latchkey_audit_details (seq, source, request_id, evidence, refused) VALUES (?1, ?2, ?3, ?4, ?5)`

/** The entry of the act that this request has done. */
export function actedBefore(handle: Handle, requestId: string): string | undefined {
  const [before] = handle.rows(actedSql, [requestId])
  return before && String(before.seq)
}

/** A request that acted before adds nothing; its refused attempts are entries of their own. */
export function addEntry(handle: Handle, entry: NewEntry): void {
  if (entry.refused === undefined && actedBefore(handle, entry.requestId) !== undefined) return
  writeEntry(handle, entry)
}

export function writeEntry(handle: Handle, entry: NewEntry): string {
  const { id = '', act, by, reason, detail, scope, source, requestId, evidence, refused } = entry
  const texts = [storable(by), storable(reason), storable(detail)]
  const scoped = scope === undefined ? null : storable(scope)
  const [added] = handle.rows(auditSql, [id, act, ...texts, readNowMs(handle), scoped])
  const proof = evidence === undefined ? null : storable(evidence)
  handle.run(detailSql, [Number(added?.seq), source, requestId, proof, refused ?? null])
  return String(added?.seq)
}

/** By the primary key, by the row, or by the actor; each has an index. The newest first, unless pages go forward. */
export function entriesSql({ by, id, after, before }: EntryQuery): string {
  const conditions = ['?4 > 0']
  if (by !== undefined) conditions.push('a.by = ?1')
  if (id !== undefined) conditions.push('a.id = ?2')
  if (after !== undefined) conditions.push('a.seq > ?3')
  else if (before !== undefined) conditions.push('a.seq < ?3')
  return `
    SELECT a.seq AS audit_id, a.at_ms, a.by, a.act, NULLIF(a.id, '') AS key_id, a.reason, a.detail, d.source, d.request_id, d.evidence,
      d.from_state, d.to_state, d.fence, d.refused
    FROM latchkey_audit AS a LEFT JOIN latchkey_audit_details AS d ON d.seq = a.seq
    WHERE ${conditions.join(' AND ')} ORDER BY a.seq ${after === undefined ? 'DESC' : 'ASC'} LIMIT ?4`
}

export function entries(handle: Handle, query: EntryQuery): readonly OperatorEntry[] {
  const { by, id = null, after, before, limit } = query as EntryQuery & { readonly id?: string | null }
  const from = after ?? before
  const values = [by === undefined ? null : storable(by), id, from === undefined ? null : Number(from), limit]
  return rowsAs<EntryColumns>(handle, entriesSql(query), values).map(entryOf)
}
