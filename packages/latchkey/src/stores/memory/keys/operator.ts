/** What people do with rows: list, inspect, forget and unpark them. */
import type { Act, ForgetResult, Inspection, Listing, Page, UnparkResult } from '../../../ports/store.ts'
import { forgetDetail, unparkDetail } from '../../shared/audit-detail.ts'
import { pageOf, pageSize } from '../../shared/listing.ts'
import type { Tables } from '../tables.ts'
import { readRecord, toRecord } from './row.ts'

/** Ordered by id, so that a page continues where the last one ended whatever happened to the rows in between. */
export function list({ rows, now }: Tables, { state, parked, operation, scope, limit, after }: Listing): Page {
  const size = pageSize(limit)
  const found = [...rows.values()]
    .filter(row => state === undefined || row.state === state)
    .filter(row => parked === undefined || row.parked)
    .filter(row => operation === undefined || row.operation === operation)
    .filter(row => scope === undefined || row.scope === scope)
    .filter(row => after === undefined || row.id > after)
    .sort((left, right) => (left.id < right.id ? -1 : 1))
    .slice(0, size + 1)
    .map(row => ({ ...toRecord(row, now()), outcome: undefined }))
  return pageOf(found, size)
}

export function inspect(tables: Tables, id: string): Inspection {
  const { log } = tables
  return { record: readRecord(tables, id), evidence: log.evidenceOf(id), audit: log.auditOf(id) }
}

export function forget(
  { rows, journals, references, admin, log, now }: Tables,
  id: string,
  { by, reason }: Act,
): ForgetResult {
  const row = rows.get(id)
  if (row === undefined) return { kind: 'not-found' }
  if (row.state !== 'completed') return { kind: 'wrong-state', state: row.state }
  rows.delete(id)
  journals.delete(id)
  references.delete(id)
  admin.notes.delete(id)
  log.addAudit(row, { by, reason, act: 'forget', atMs: now(), detail: forgetDetail(row) })
  return { kind: 'forgotten' }
}

/** Past its expiry, the row gets the time again that it was given: it is unparked to continue, not to be reaped. */
export function unpark({ rows, log, now }: Tables, id: string, { by, reason }: Act): UnparkResult {
  const row = rows.get(id)
  if (row === undefined) return { kind: 'not-found' }
  if (!row.parked) return { kind: 'not-parked' }
  const atMs = now()
  const expiresAtMs = Math.max(row.expiresAtMs, atMs + row.expiresAtMs - row.createdAtMs)
  const doubt = row.doubt && { ...row.doubt, tries: 0, looking: false, lookUpAtMs: atMs }
  rows.set(id, { ...row, parked: false, dueAtMs: atMs, crashes: 0, expiresAtMs, doubt })
  log.addAudit(row, { by, reason, act: 'unpark', atMs, detail: unparkDetail(row) })
  return { kind: 'unparked' }
}
