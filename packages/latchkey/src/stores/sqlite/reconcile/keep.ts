/** Evidence and messages, written down before anything follows from them. */
import type { Finding, KeepResult, Subject } from '../../../ports/reconciliation.ts'
import type { Handle } from '../connection/handle.ts'
import { readNowMs, storable } from '../keys/row.ts'
import { addEvidence } from './evidence-and-audit.ts'
import { contentOf } from './settle.ts'

const createdSql = 'SELECT created_at_ms FROM latchkey_keys WHERE id = ?1'
export const namedSql: string = 'SELECT seq, at_ms FROM latchkey_evidence WHERE id = ?1 AND source = ?2 AND ref = ?3'

export function keep(handle: Handle, { id, effect }: Subject, { source, ref, verdict, delivery }: Finding): KeepResult {
  const name = storable(ref)
  const nowMs = readNowMs(handle)
  // Also where there is no row: a row that begins later is not what the message is about.
  const atMs = delivery === undefined ? nowMs : receive(handle, { source, ref: name, ...delivery, nowMs })
  if (atMs === undefined) return { kind: 'replayed' }
  const [row] = handle.rows(createdSql, [id])
  if (row === undefined || atMs < Number(row.created_at_ms)) return { kind: 'no-row' }
  const [known] = handle.rows(namedSql, [id, source, name])
  if (known !== undefined && Number(known.at_ms) >= Number(row.created_at_ms)) {
    return { kind: 'duplicate', evidenceId: String(known.seq) }
  }
  // Evidence about an earlier generation of the row was about something else, whatever its name.
  if (known !== undefined) handle.rows('UPDATE latchkey_evidence SET ref = NULL WHERE seq = ?1', [Number(known.seq)])
  const entry = { source, verdict: verdict.kind, applied: false, atMs, ref: name, effect, ...contentOf(verdict) }
  return { kind: 'kept', evidenceId: String(addEvidence(handle, id, entry)) }
}

const receiveSql = `
  INSERT INTO latchkey_received AS r (source, ref, at_ms, signed_at_ms) VALUES (?1, ?2, ?3, ?4)
  ON CONFLICT (source, ref) DO UPDATE SET signed_at_ms = excluded.signed_at_ms
  WHERE excluded.signed_at_ms > r.signed_at_ms
  RETURNING at_ms`

/** When the message came for the first time; `undefined`: this delivery is known, so it was recorded and sent again. */
function receive(
  handle: Handle,
  { source, ref, signedAtMs, nowMs }: { source: string; ref: string; signedAtMs: number; nowMs: number },
): number | undefined {
  const [row] = handle.rows(receiveSql, [source, ref, nowMs, Math.floor(signedAtMs)])
  return row && Number(row.at_ms)
}

export const forgetReceivedSql: string = `
  DELETE FROM latchkey_received WHERE (source, ref) IN (
    SELECT source, ref FROM latchkey_received WHERE at_ms <= ?1 ORDER BY at_ms LIMIT ?2)
  RETURNING ref`

export function forgetDeliveries(
  handle: Handle,
  { olderThanMs, limit }: { olderThanMs: number; limit: number },
): number {
  return handle.rows(forgetReceivedSql, [Math.floor(readNowMs(handle) - olderThanMs), limit]).length
}
