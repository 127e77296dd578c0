/**
 * What a store is, in the fewest words: a map, a clock that only moves when told to, and the transition table. Written from
 * the port and not from any store, so that a mistake would have to be made twice to go unseen.
 */
import type { Failure, GrantedFrom, KeyRecord, Recovery, State } from '../../src/ports/store.ts'
import { goOn, mayHaveHappened, type ModelJournal, triedAgain } from './journal-model.ts'

export interface ModelRow {
  state: State
  recovery: Recovery
  fingerprint: string
  fence: number
  claimId: string
  attempts: number
  crashes: number
  parked: boolean
  lockedUntil: number
  dueAt: number
  createdAt: number
  expiresAt: number
  answer: string | undefined
  answeredBy: 'owner' | 'operator' | undefined
  errorCode: string | undefined
  journal: ModelJournal | undefined
}

export interface ModelClaim {
  readonly key: string
  readonly fence: number
  readonly claimId: string
}

export interface Asked {
  readonly key: string
  readonly claimId: string
  readonly fingerprint: string
  readonly recovery: Recovery
  readonly work: string | undefined
  readonly leaseMs: number
  readonly expiresInMs: number
}

/** `open`: the port does not say which, and the row must be the same either way. */
export type Expected<Answer> = Answer | 'open'

export interface StoreModel {
  nowMs: number
  grants: number
  readonly rows: Map<string, ModelRow>
  /** Every claim ever granted, so that stale owners keep coming back. */
  readonly claims: ModelClaim[]
  readonly acts: { readonly key: string; readonly act: 'settle' | 'forget' | 'unpark' }[]
}

export function emptyModel(): StoreModel {
  return { nowMs: 0, grants: 0, rows: new Map(), claims: [], acts: [] }
}

export function nextClaimId(model: StoreModel): string {
  model.grants += 1
  return `grant ${model.grants}`
}

function overdue({ nowMs }: StoreModel, row: ModelRow): boolean {
  return row.state === 'in_progress' && nowMs >= row.lockedUntil
}

function expired({ nowMs }: StoreModel, row: ModelRow): boolean {
  return (row.state === 'completed' || row.state === 'failed_retryable') && !row.parked && nowMs >= row.expiresAt
}

function due({ nowMs }: StoreModel, row: ModelRow): boolean {
  return row.state === 'failed_retryable' && nowMs >= row.dueAt
}

export function owned({ rows }: StoreModel, claim: ModelClaim): ModelRow | undefined {
  const row = rows.get(claim.key)
  return row?.fence === claim.fence && row.claimId === claim.claimId ? row : undefined
}

function keepAtLeast({ nowMs }: StoreModel, row: ModelRow, retentionMs: number): void {
  if (row.expiresAt - nowMs < retentionMs) row.expiresAt = nowMs + retentionMs
}

function reasonToGrant(model: StoreModel, row: ModelRow, fingerprint: string): GrantedFrom | undefined {
  if (expired(model, row)) return 'expired'
  if (row.parked || row.fingerprint !== fingerprint) return undefined
  if (due(model, row)) return 'failed_retryable'
  return overdue(model, row) && !isHeld(model, row) ? 'dead-lease' : undefined
}

/** Nobody may go on with it when its owner dies. */
function isHeld({ nowMs }: StoreModel, row: ModelRow): boolean {
  return row.recovery === 'hold' || (row.recovery === 'resume' && mayHaveHappened(row.journal, nowMs))
}

export function claim(model: StoreModel, asked: Asked): GrantedFrom | 'seen' {
  const row = model.rows.get(asked.key)
  const from = row ? reasonToGrant(model, row, asked.fingerprint) : 'none'
  if (from === undefined) return 'seen'
  const sameLife = from === 'expired' ? undefined : row
  const fence = (row?.fence ?? 0) + 1
  model.rows.set(asked.key, {
    state: 'in_progress',
    recovery: asked.recovery,
    fingerprint: asked.fingerprint,
    fence,
    claimId: asked.claimId,
    attempts: sameLife ? sameLife.attempts + 1 : 1,
    crashes: sameLife ? sameLife.crashes + Number(from === 'dead-lease') : 0,
    parked: false,
    lockedUntil: model.nowMs + asked.leaseMs,
    dueAt: model.nowMs,
    createdAt: sameLife?.createdAt ?? model.nowMs,
    expiresAt: model.nowMs + asked.expiresInMs,
    answer: undefined,
    answeredBy: undefined,
    errorCode: sameLife?.errorCode,
    journal: goOn(sameLife?.journal, asked.work),
  })
  model.claims.push({ key: asked.key, fence, claimId: asked.claimId })
  return from
}

export function heartbeat(model: StoreModel, claim: ModelClaim, leaseMs: number): 'written' | 'claim-lost' {
  const row = owned(model, claim)
  if (row?.state !== 'in_progress') return 'claim-lost'
  row.lockedUntil = model.nowMs + leaseMs
  return 'written'
}

export function complete(
  model: StoreModel,
  claim: ModelClaim,
  { answer, retentionMs }: { answer: string; retentionMs: number },
): 'written' | 'claim-lost' {
  const row = owned(model, claim)
  if (row?.state === 'completed' && row.answeredBy === 'owner') return 'written'
  if (row?.state !== 'in_progress' && row?.state !== 'unknown') return 'claim-lost'
  row.state = 'completed'
  row.answer = answer
  row.answeredBy = 'owner'
  keepAtLeast(model, row, retentionMs)
  return 'written'
}

export function fail(model: StoreModel, claim: ModelClaim, failure: Failure): Expected<'written' | 'claim-lost'> {
  const row = owned(model, claim)
  if (row?.state === failure.to) return 'open'
  if (row?.state !== 'in_progress' && row?.state !== 'unknown') return 'claim-lost'
  row.state = failure.to
  row.dueAt = model.nowMs + failure.dueInMs
  row.errorCode = failure.errorCode
  if (failure.to === 'failed_retryable') triedAgain(row.journal, 0)
  return 'written'
}

export function park(model: StoreModel, claim: ModelClaim, cause: string): 'written' | 'claim-lost' {
  const row = owned(model, claim)
  if (row?.parked === true) return 'written'
  if (row?.state !== 'in_progress') return 'claim-lost'
  row.state = 'failed_retryable'
  row.parked = true
  row.dueAt = model.nowMs
  row.errorCode = cause
  return 'written'
}

/** Past its expiry, a row that goes on gets the time again that it was given. */
export function unpark(model: StoreModel, key: string): 'unparked' | 'not-found' | 'not-parked' {
  const row = model.rows.get(key)
  if (!row?.parked) return row ? 'not-parked' : 'not-found'
  model.acts.push({ key, act: 'unpark' })
  row.parked = false
  row.dueAt = model.nowMs
  row.crashes = 0
  keepAtLeast(model, row, row.expiresAt - row.createdAt)
  return 'unparked'
}

export function release(model: StoreModel, claim: Omit<ModelClaim, 'fence'>): Expected<'released' | 'not-yours'> {
  const row = model.rows.get(claim.key)
  if (row?.claimId !== claim.claimId) return 'not-yours'
  if (row.state === 'failed_retryable') return 'open'
  if (row.state !== 'in_progress') return 'not-yours'
  row.state = 'failed_retryable'
  row.dueAt = model.nowMs
  return 'released'
}

/** Which of several dead rows a bounded sweep takes is the store's choice: it tells, and each is checked. */
export function sweepable(model: StoreModel): string[] {
  const sweeps = (row: ModelRow) => overdue(model, row) && (row.recovery !== 'resume' || isHeld(model, row))
  return [...model.rows].filter(([, row]) => sweeps(row)).map(([key]) => key)
}

export function sweep(model: StoreModel, key: string): 'unknown' | 'failed_retryable' | 'must not be swept' {
  const row = model.rows.get(key)
  if (!row || !sweepable(model).includes(key)) return 'must not be swept'
  row.state = isHeld(model, row) ? 'unknown' : 'failed_retryable'
  row.dueAt = model.nowMs
  row.crashes += 1
  return row.state
}

/** What a worker is told of: phased rows that a claim would be granted, other than as absent. */
export function resumable(model: StoreModel): string[] {
  const grants = (row: ModelRow) => reasonToGrant(model, row, row.fingerprint) ?? 'expired'
  const phased = [...model.rows].filter(([, row]) => row.recovery === 'resume')
  return phased.filter(([, row]) => grants(row) !== 'expired').map(([key]) => key)
}

export function reapable(model: StoreModel): string[] {
  return [...model.rows].filter(([, row]) => expired(model, row)).map(([key]) => key)
}

/** Without an answer: it never happened. */
export function settle(
  model: StoreModel,
  key: string,
  { answer, retentionMs }: { answer: string | undefined; retentionMs: number },
): State | 'settled' | 'not-found' {
  const row = model.rows.get(key)
  if (row?.state !== 'unknown') return row?.state ?? 'not-found'
  model.acts.push({ key, act: 'settle' })
  keepAtLeast(model, row, retentionMs)
  row.dueAt = model.nowMs
  row.state = answer === undefined ? 'failed_retryable' : 'completed'
  row.answer = answer
  row.answeredBy = answer === undefined ? undefined : 'operator'
  if (answer === undefined) triedAgain(row.journal, 1)
  return 'settled'
}

export function forget(model: StoreModel, key: string): State | 'forgotten' | 'not-found' {
  const row = model.rows.get(key)
  if (row?.state !== 'completed') return row?.state ?? 'not-found'
  model.acts.push({ key, act: 'forget' })
  model.rows.delete(key)
  return 'forgotten'
}

/** The part of a record that the model foresees. */
export function view(model: StoreModel, key: string): object | undefined {
  const row = model.rows.get(key)
  if (!row) return undefined
  const { state, recovery, fingerprint, fence, claimId, attempts, crashes, parked, answer, errorCode } = row
  return {
    ...{ state, recovery, fingerprint, fence, claimId, attempts, crashes, parked, answer, errorCode },
    expired: expired(model, row),
    leased: state === 'in_progress' && !overdue(model, row),
    due: due(model, row),
  }
}

/** The same part, as a store tells it. `claimIdOf` turns the store's claim ids back into the model's. */
export function viewOf(record: KeyRecord | undefined, claimIdOf: (claimId: string) => string): object | undefined {
  if (!record) return undefined
  const { state, recovery, fence, attempts, crashes, parked, expired } = record
  return {
    ...{ state, recovery, fence, attempts, crashes, parked, expired },
    fingerprint: text(record.fingerprint),
    claimId: claimIdOf(record.claimId),
    answer: record.outcome && text(record.outcome.body),
    errorCode: record.lastErrorCode,
    leased: record.leaseLeftMs > 0,
    due: state === 'failed_retryable' && record.dueInMs <= 0,
  }
}

function text(data: Uint8Array | undefined): string | undefined {
  return data && new TextDecoder().decode(data)
}
