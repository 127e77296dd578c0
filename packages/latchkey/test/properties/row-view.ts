/** What can be seen of a row, from the model and from a store, so that they can be compared. */
import type { KeyRecord } from '../../src/ports/store.ts'
import { due, expired, gone, over, overdue, type StoreModel } from './store-model.ts'

/** The part of a record that the model foresees. */
export function view(model: StoreModel, key: string): object | undefined {
  const row = model.rows.get(key)
  if (!row) return undefined
  const { state, recovery, fingerprint, fence, claimId, attempts, crashes, parked, errorCode } = row
  return {
    ...{ state, recovery, fingerprint, fence, claimId, attempts, crashes, parked, errorCode },
    expired: expired(model, row),
    gone: gone(model, row),
    // What became of the answer of a row that counts as absent, the port leaves open.
    answer: over(model, row) ? undefined : row.answer,
    leased: state === 'in_progress' && !overdue(model, row),
    due: state === 'failed_retryable' && due(model, row),
  }
}

/** The same part, as a store gives it. `claimIdOf` turns the store's claim ids back into the model's. */
export function viewOf(record: KeyRecord | undefined, claimIdOf: (claimId: string) => string): object | undefined {
  if (!record) return undefined
  const { state, recovery, fence, attempts, crashes, parked, expired, gone } = record
  return {
    ...{ state, recovery, fence, attempts, crashes, parked, expired, gone },
    fingerprint: text(record.fingerprint),
    claimId: claimIdOf(record.claimId),
    answer: record.outcome && !expired ? text(record.outcome.body) : undefined,
    errorCode: record.lastErrorCode,
    leased: record.leaseLeftMs > 0,
    due: state === 'failed_retryable' && record.dueInMs <= 0,
  }
}

function text(data: Uint8Array | undefined): string | undefined {
  return data && new TextDecoder().decode(data)
}
