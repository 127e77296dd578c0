/** Who gets a row, and what the row is then. Pure, for the stores that decide it outside of SQL. */
import type {
  AtomicRequest,
  ClaimRequest,
  EnqueueRequest,
  GrantedFrom,
  KeyRecord,
  ReadableRecord,
  TakeOver,
} from '../../ports/store.ts'

export interface GrantRequest extends Pick<ClaimRequest, 'fingerprint' | 'takeOver'> {
  /** The row has an open intent that may not be repeated. Asked only for phased work with a dead lease. */
  isStuck(id: string): boolean
}

/** Why the row may be granted to this request; `undefined`: it may not. */
export function grantedFrom(
  record: KeyRecord | undefined,
  { fingerprint, takeOver, isStuck }: GrantRequest,
): GrantedFrom | undefined {
  if (record === undefined) return 'none'
  if (record.expired) return 'expired'
  if (!mayTakeOver(record, takeOver)) return undefined
  // Before the state: a key reused for another request is never granted, not even over a dead lease.
  if (record.parked || Buffer.compare(record.fingerprint, fingerprint) !== 0) return undefined
  switch (record.state) {
    case 'pending':
    case 'failed_retryable':
      return record.dueInMs <= 0 ? record.state : undefined
    case 'in_progress':
      return record.leaseLeftMs <= 0 && mayContinue(record, isStuck) ? 'dead-lease' : undefined
    default:
      return undefined
  }
}

function mayTakeOver({ fence, claimId }: KeyRecord, takeOver: TakeOver | undefined): boolean {
  if (takeOver === undefined) return true
  return takeOver !== 'none' && takeOver.fence === fence && takeOver.claimId === claimId
}

function mayContinue({ id, recovery }: KeyRecord, isStuck: GrantRequest['isStuck']): boolean {
  return recovery === 'rerun' || (recovery === 'resume' && !isStuck(id))
}

type Kept = 'id' | 'scope' | 'operation' | 'fingerprint' | 'fence' | 'claimId' | 'attempts' | 'crashes' | 'createdAtMs'

/** What a row keeps of the one before it, whatever state the grant gives it. */
export interface GrantedRow extends Pick<ReadableRecord, Kept | 'description' | 'lastErrorCode'> {
  readonly tombstoneMs: number | undefined
}

/** An expired row counts as absent: only its fence lives on, and a late owner of it never matches again. */
export function grantedRow(
  record: KeyRecord | undefined,
  request: ClaimRequest | AtomicRequest,
  nowMs: number,
): GrantedRow {
  const before = record?.expired ? undefined : record
  const deadLease = before?.state === 'in_progress' ? 1 : 0
  return {
    id: request.identity.id,
    scope: request.identity.scope,
    operation: request.identity.operation,
    // A copy: the caller may reuse its bytes.
    fingerprint: new Uint8Array(request.fingerprint),
    fence: (record?.fence ?? 0) + 1,
    claimId: request.claimId,
    attempts: (before?.attempts ?? 0) + 1,
    crashes: (before?.crashes ?? 0) + deadLease,
    createdAtMs: before?.createdAtMs ?? nowMs,
    tombstoneMs: request.tombstoneMs,
    description: request.description ?? before?.description,
    lastErrorCode: before?.lastErrorCode,
  }
}

/** Work for a worker: no attempt counts yet. `before` is expired, or there is none. */
export function queuedRow(before: KeyRecord | undefined, request: EnqueueRequest, nowMs: number): GrantedRow {
  return {
    id: request.identity.id,
    scope: request.identity.scope,
    operation: request.identity.operation,
    fingerprint: new Uint8Array(request.fingerprint),
    fence: (before?.fence ?? 0) + 1,
    claimId: request.claimId,
    attempts: 0,
    crashes: 0,
    createdAtMs: nowMs,
    tombstoneMs: request.tombstoneMs,
    description: request.description,
    lastErrorCode: undefined,
  }
}
