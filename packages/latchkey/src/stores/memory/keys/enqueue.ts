/** Work for later: the row waits for a worker, with its input beside it. */
import type { EnqueueRequest, EnqueueResult } from '../../../ports/store.ts'
import { queuedRow } from '../../shared/grant.ts'
import { keepInput } from '../steps/journal.ts'
import type { Writable } from '../tables.ts'
import { newRow, readRecord } from './row.ts'

export function enqueue(tables: Writable, request: EnqueueRequest): EnqueueResult {
  const { id } = request.identity
  const before = readRecord(tables, id)
  if (before !== undefined && !before.expired) return { kind: 'seen', record: before }
  const nowMs = tables.now()
  const row = newRow(queuedRow(before, request, nowMs), {
    state: 'pending',
    recovery: 'resume',
    lockedUntilMs: nowMs,
    dueAtMs: nowMs,
    expiresAtMs: nowMs + request.expiresInMs,
  })
  tables.rows.set(id, row)
  // What an earlier generation of the row left behind is not a step of this one.
  tables.journals.delete(id)
  keepInput(tables, id, request.work)
  return { kind: 'queued' }
}
