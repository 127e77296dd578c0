/** Raw columns of one key, as SQL drivers give them, to a record. Pure: the store's own time comes in as a number. */
import type { Outcome } from '../../ports/outcome.ts'
import type { KeyRecord, ReadableRecord, RowState, UnreadableRecord } from '../../ports/store.ts'
import { recoveryOf, rowStateOf, whyUnknown } from './codes.ts'
import { headersFromText } from './outcome-codec.ts'
import { unpackOutcome } from './packed-outcome.ts'

/** Drivers differ: a 64-bit integer may arrive as text, and applications replace number parsers for their own reasons. */
export type RawNumber = number | bigint | string

/** Instants are milliseconds since 1970; fractions are welcome. */
export interface RecordRow {
  readonly id: string
  readonly scope: string
  readonly operation: string
  readonly state: RawNumber
  readonly recovery: RawNumber
  readonly fingerprint: Uint8Array
  readonly fence: RawNumber
  readonly claim_id: string
  readonly attempts: RawNumber
  readonly crashes: RawNumber
  readonly locked_until_ms: RawNumber | null
  readonly due_at_ms: RawNumber | null
  readonly created_at_ms: RawNumber
  readonly completed_at_ms: RawNumber | null
  readonly expires_at_ms: RawNumber
  readonly parked_at_ms: RawNumber | null
  /** How long a completed row is known to be gone after its expiry; null: not at all. */
  readonly tombstone_ms: RawNumber | null
  /** When the reaper took all but the tombstone; the expiry then is the tombstone's. */
  readonly gone_at_ms: RawNumber | null
  readonly description: string | null
  readonly last_error_code: string | null
}

/** All null, or absent, when the row has no outcome or the statement did not ask for it. */
export interface OutcomeRow {
  readonly outcome_status?: RawNumber | null
  readonly outcome_version?: RawNumber | null
  readonly outcome_headers?: string | null
  readonly outcome_body?: Uint8Array | null
  /** A small outcome, which is kept with the key. What the other columns have goes first: an older version wrote it later. */
  readonly outcome_packed?: Uint8Array | null
}

export function recordOf(row: RecordRow & OutcomeRow, nowMs: number): KeyRecord {
  const state = rowStateOf(Number(row.state))
  const recovery = recoveryOf(Number(row.recovery))
  const parked = row.parked_at_ms !== null
  // A parked row waits for a person, so it is never taken for absent, however old.
  const over = isFinished(state) && !parked && Number(row.expires_at_ms) <= nowMs
  const gone = state === 'completed' && isGone(row, over, nowMs)
  const read = state === 'completed' && !gone ? readOutcome(row) : nothing
  const facts = {
    id: row.id,
    scope: row.scope,
    operation: row.operation,
    state,
    recovery,
    fingerprint: row.fingerprint,
    fence: Number(row.fence),
    claimId: row.claim_id,
    attempts: Number(row.attempts),
    crashes: Number(row.crashes),
    leaseLeftMs: state === 'in_progress' ? leftMs(row.locked_until_ms, nowMs) : 0,
    dueInMs: state === 'failed_retryable' || state === 'pending' ? leftMs(row.due_at_ms, nowMs) : 0,
    expired: over && !gone,
    gone,
    parked,
    createdAtMs: Math.floor(Number(row.created_at_ms)),
    ageMs: Math.max(0, Math.floor(nowMs - Number(row.created_at_ms))),
    completedAtMs: row.completed_at_ms === null ? undefined : Math.floor(Number(row.completed_at_ms)),
    expiresAtMs: Math.floor(Number(row.expires_at_ms)),
    description: row.description ?? undefined,
    lastErrorCode: row.last_error_code ?? undefined,
    outcome: read.outcome,
  }
  if (state === 'unreadable') return unreadable(facts, whyUnknown('state', row.state))
  if (recovery === undefined) return unreadable(facts, whyUnknown('recovery', row.recovery))
  // What is expired counts as absent, readable or not.
  if (read.why !== undefined && !facts.expired) return unreadable(facts, read.why)
  // The same object, and not a copy: every replay comes this way. Both columns were compared above.
  return facts as ReadableRecord
}

function unreadable(facts: Omit<UnreadableRecord, 'state' | 'recovery' | 'outcome' | 'why'>, why: string): KeyRecord {
  return { ...facts, state: 'unreadable', recovery: undefined, outcome: undefined, why }
}

interface ReadOutcome {
  readonly outcome: Outcome | undefined
  /** Why there is none, where there should be one. */
  readonly why: string | undefined
}

const nothing: ReadOutcome = { outcome: undefined, why: undefined }

function readOutcome(row: OutcomeRow & Pick<RecordRow, 'fence'>): ReadOutcome {
  try {
    const outcome = outcomeOf(row)
    // Undefined where the statement did not ask for all there is; a null is an answer, in the same snapshot as the state.
    const isMissing = outcome === undefined && row.outcome_status === null
    return { outcome, why: isMissing ? 'it is completed, and no outcome is stored for it' : undefined }
  } catch (error) {
    return { outcome: undefined, why: error instanceof Error ? error.message : String(error) }
  }
}

function isGone(row: RecordRow, over: boolean, nowMs: number): boolean {
  if (row.gone_at_ms !== null) return !over
  return over && row.tombstone_ms !== null && Number(row.expires_at_ms) + Number(row.tombstone_ms) > nowMs
}

function isFinished(state: RowState): boolean {
  return state === 'completed' || state === 'failed_retryable'
}

/** Rounded up: whatever is left of a millisecond still is left, and only what has run out is zero or less. */
function leftMs(atMs: RawNumber | null, nowMs: number): number {
  return atMs === null ? 0 : Math.ceil(Number(atMs) - nowMs)
}

export function outcomeOf(row: OutcomeRow & Pick<RecordRow, 'fence'>): Outcome | undefined {
  if (row.outcome_status === null || row.outcome_status === undefined) {
    return row.outcome_packed ? unpackOutcome(row.outcome_packed, Number(row.fence)) : undefined
  }
  return {
    status: Number(row.outcome_status),
    headers: headersFromText(row.outcome_headers ?? '[]'),
    body: row.outcome_body ?? undefined,
    version: Number(row.outcome_version ?? 1),
  }
}
