/** Work for later: the row waits for a worker, with its input beside it. */
import type { EnqueueRequest, EnqueueResult, KeyRecord } from '../../../ports/store.ts'
import type { Handle } from '../connection/handle.ts'
import { queuedRow } from '../../shared/grant.ts'
import { deleteJournal, keepInput } from '../steps/journal.ts'
import { putRow, readNowMs, readRecord } from './row.ts'

/** A look without the write lock: whether the work is queued is decided under it, once more. */
export function notQueued(record: KeyRecord | undefined): Extract<EnqueueResult, { kind: 'seen' }> | undefined {
  return record === undefined || record.expired ? undefined : { kind: 'seen', record }
}

export function enqueue(handle: Handle, request: EnqueueRequest): EnqueueResult {
  const before = readRecord(handle, request.identity.id)
  if (before !== undefined && !before.expired) return { kind: 'seen', record: before }
  const nowMs = readNowMs(handle)
  putRow(handle, {
    state: 'pending',
    recovery: 'resume',
    lockedUntilMs: undefined,
    dueAtMs: nowMs,
    completedAtMs: undefined,
    expiresAtMs: nowMs + request.expiresInMs,
    ...queuedRow(before, request, nowMs),
  })
  // What an earlier generation of the row left behind is not a step of this one.
  deleteJournal(handle, request.identity.id)
  keepInput(handle, request.identity.id, request.work)
  return { kind: 'queued' }
}
