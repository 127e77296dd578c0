/** A parked message that is never delivered, in one write transaction with its entry of the audit. */
import type { SkipRequest, SkipResult } from '../../../ports/faculties/admin.ts'
import { skippedEntry } from '../../shared/outbox/skipped.ts'
import type { Handle } from '../connection/handle.ts'
import { readNowMs } from '../keys/row.ts'
import { rowid } from '../outbox/operate.ts'
import { wakeSql } from '../outbox/settle.ts'
import { rowsAs } from './columns.ts'
import { actedBefore, writeEntry } from './entries.ts'

interface SkippedRow {
  readonly lane: number
  readonly aggregate: string | null
  readonly topic: string
  readonly dedup_id: string
  readonly scope: string | null
}

const messageSql = `
  SELECT p.lane, p.aggregate, o.topic, o.dedup_id, o.scope
  FROM latchkey_outbox_parked AS p JOIN latchkey_outbox AS o ON o.id = p.id
  WHERE p.id = ?1 AND p.parked_at_ms IS NOT NULL`
// Below the cursor and not aside any more, it is pruned like one that was delivered.
const skipSql = 'DELETE FROM latchkey_outbox_parked WHERE id = ?1'

export function skip(handle: Handle, request: SkipRequest): SkipResult {
  const before = actedBefore(handle, request.by.requestId)
  if (before !== undefined) return { kind: 'acted', auditId: before, repeated: true }
  const id = rowid(request.position)
  const [row] = id === undefined ? [] : rowsAs<SkippedRow>(handle, messageSql, [id])
  if (id === undefined || row === undefined) return { kind: 'not-found' }
  const { lane, aggregate, topic, dedup_id: dedupId, scope } = row
  handle.run(skipSql, [id])
  if (aggregate !== null) handle.run(wakeSql, [lane, aggregate, readNowMs(handle)])
  const message = { topic, aggregate: aggregate ?? undefined, dedupId, scope: scope ?? undefined }
  return { kind: 'acted', auditId: writeEntry(handle, skippedEntry(request, message)), repeated: false }
}
