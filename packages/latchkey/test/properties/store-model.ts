/**
 * What a store is, in the fewest words: a map, a clock that only moves by hand, and the transition table. Written from
 * the port and not from any store, so that a mistake would have to be made twice to go unseen.
 */
import type { Failure, GrantedFrom, Recovery, State } from '../../src/ports/store.ts'
import { dropEvidence, endLife, type EvidenceModel, generationOf, noEvidence } from './evidence-model.ts'
import { begun, goOn, mayHaveHappened, type ModelJournal, openEffect, triedAgain } from './journal-model.ts'

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
  tombstoneMs: number | undefined
  /** The reaper left the tombstone only. */
  stripped: boolean
  answer: string | undefined
  answeredBy: 'owner' | 'evidence' | undefined
  errorCode: string | undefined
  journal: ModelJournal | undefined
  doubt: ModelDoubt | undefined
}

/** Present exactly while the row is unknown. */
export interface ModelDoubt {
  readonly since: number
  look: number
  tries: number
  /** Absent: no look-up yet. */
  lookUpAt: number | undefined
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
  readonly tombstoneMs: number | undefined
}

/** `open`: the port leaves open which, and the row must be the same either way. */
export type Expected<Answer> = Answer | 'open'

export interface StoreModel {
  nowMs: number
  grants: number
  readonly rows: Map<string, ModelRow>
  /** Every claim ever granted, so that stale owners keep coming back. */
  /** Of each key, the newest fence that a store showed which seeds it from time. */
  readonly fences: Map<string, { readonly claimId: string; readonly fence: number }>
  readonly claims: ModelClaim[]
  readonly acts: { readonly key: string; readonly act: 'settle' | 'forget' | 'unpark' }[]
  readonly evidence: EvidenceModel
}

export function emptyModel(): StoreModel {
  return { nowMs: 0, grants: 0, rows: new Map(), claims: [], fences: new Map(), acts: [], evidence: noEvidence() }
}

export function nextClaimId(model: StoreModel): string {
  model.grants += 1
  return `grant ${model.grants}`
}

export function overdue({ nowMs }: StoreModel, row: ModelRow): boolean {
  return row.state === 'in_progress' && nowMs >= row.lockedUntil
}

/** Past its retention; with a tombstone that is only the first of two ends. */
export function over({ nowMs }: StoreModel, row: ModelRow): boolean {
  return (row.state === 'completed' || row.state === 'failed_retryable') && !row.parked && nowMs >= row.expiresAt
}

export function gone(model: StoreModel, row: ModelRow): boolean {
  const { state, expiresAt, tombstoneMs } = row
  return state === 'completed' && over(model, row) && model.nowMs < expiresAt + (tombstoneMs ?? 0)
}

export function expired(model: StoreModel, row: ModelRow): boolean {
  return over(model, row) && !gone(model, row)
}

export function due({ nowMs }: StoreModel, row: ModelRow): boolean {
  return (row.state === 'failed_retryable' || row.state === 'pending') && nowMs >= row.dueAt
}

export function owned({ rows }: StoreModel, claim: ModelClaim): ModelRow | undefined {
  const row = rows.get(claim.key)
  return row?.fence === claim.fence && row.claimId === claim.claimId ? row : undefined
}

export function keepAtLeast({ nowMs }: StoreModel, row: ModelRow, retentionMs: number): void {
  if (row.expiresAt - nowMs < retentionMs) row.expiresAt = nowMs + retentionMs
}

function reasonToGrant(model: StoreModel, row: ModelRow, fingerprint: string): GrantedFrom | undefined {
  if (expired(model, row)) return 'expired'
  if (row.parked || row.fingerprint !== fingerprint) return undefined
  if (due(model, row)) return row.state === 'pending' ? 'pending' : 'failed_retryable'
  return overdue(model, row) && !isHeld(model, row) ? 'dead-lease' : undefined
}

/** No claim may continue it when its owner dies. */
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
    tombstoneMs: asked.tombstoneMs,
    stripped: false,
    answer: undefined,
    answeredBy: undefined,
    errorCode: sameLife?.errorCode,
    journal: goOn(sameLife?.journal, asked.work),
    doubt: undefined,
  })
  if (!sameLife) endLife(model.evidence, asked.key)
  model.claims.push({ key: asked.key, fence, claimId: asked.claimId })
  return from
}

export type Queued = Omit<Asked, 'recovery' | 'leaseMs'> & { readonly deadlineInMs: number | undefined }

export function enqueue(model: StoreModel, { deadlineInMs, ...asked }: Queued): 'queued' | 'seen' {
  const row = model.rows.get(asked.key)
  if (row && !expired(model, row)) return 'seen'
  claim(model, { ...asked, recovery: 'resume', leaseMs: 0 })
  const deadlineAt = deadlineInMs === undefined ? undefined : model.nowMs + deadlineInMs
  const journal = begun(asked.work ?? '', deadlineAt)
  const queued = model.rows.get(asked.key)
  if (queued) model.rows.set(asked.key, { ...queued, state: 'pending', attempts: 0, journal })
  return 'queued'
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
): Expected<'written' | 'claim-lost'> {
  const row = owned(model, claim)
  // Who answered is not kept with a tombstone.
  if (row?.stripped) return 'open'
  if (row?.state === 'completed' && row.answeredBy === 'owner') return 'written'
  if (row?.state !== 'in_progress' && row?.state !== 'unknown') return 'claim-lost'
  // An answer for the whole says nothing about the effect in doubt.
  if (row.state === 'unknown' && row.recovery === 'resume' && openEffect(row.journal)) return 'claim-lost'
  answerRow(model, row, { answer, retentionMs, by: 'owner' })
  return 'written'
}

export function answerRow(
  model: StoreModel,
  row: ModelRow,
  { answer, retentionMs, by }: { answer: string; retentionMs: number; by: 'owner' | 'evidence' },
): void {
  Object.assign(row, { state: 'completed', answer, answeredBy: by, parked: false, doubt: undefined })
  keepAtLeast(model, row, retentionMs)
}

/** It is known that nothing happened: phased work continues where it was. */
export function backAgain(row: ModelRow, dueAt: number): void {
  const state = row.recovery === 'resume' ? 'pending' : 'failed_retryable'
  Object.assign(row, { state, dueAt, parked: false, doubt: undefined })
}

function becomeUnknown(model: StoreModel, row: ModelRow): void {
  row.state = 'unknown'
  row.doubt = { since: model.nowMs, look: 0, tries: 0, lookUpAt: undefined }
}

export function fail(model: StoreModel, claim: ModelClaim, failure: Failure): Expected<'written' | 'claim-lost'> {
  const row = owned(model, claim)
  if (row?.state === failure.to || (row?.state === 'pending' && failure.to === 'failed_retryable')) return 'open'
  if (row?.state !== 'in_progress' && row?.state !== 'unknown') return 'claim-lost'
  const dueAt = model.nowMs + failure.dueInMs
  row.errorCode = failure.errorCode
  if (failure.to === 'unknown') becomeUnknown(model, row)
  else if (row.state === 'unknown') backAgain(row, dueAt)
  else Object.assign(row, { state: failure.to, dueAt })
  if (failure.to === 'failed_retryable') triedAgain(row.journal, 0)
  return 'written'
}

export function park(model: StoreModel, claim: ModelClaim, cause: string): 'written' | 'claim-lost' {
  const row = owned(model, claim)
  if (row?.parked === true && row.state === 'failed_retryable') return 'written'
  if (row?.state !== 'in_progress') return 'claim-lost'
  row.state = 'failed_retryable'
  row.parked = true
  row.dueAt = model.nowMs
  row.errorCode = cause
  return 'written'
}

/** Past its expiry, a row that continues gets the time again that it was given. */
export function unpark(model: StoreModel, key: string): 'unparked' | 'not-found' | 'not-parked' {
  const row = model.rows.get(key)
  if (!row?.parked) return row ? 'not-parked' : 'not-found'
  model.acts.push({ key, act: 'unpark' })
  row.parked = false
  row.dueAt = model.nowMs
  row.crashes = 0
  if (row.doubt) Object.assign(row.doubt, { tries: 0, lookUpAt: model.nowMs })
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

export function releaseMany(model: StoreModel, claims: readonly ModelClaim[]): string[] {
  return claims.filter(claim => releaseLost(model, claim)).map(({ claimId }) => claimId)
}

function releaseLost(model: StoreModel, { key, claimId }: ModelClaim): boolean {
  const row = model.rows.get(key)
  if (row?.claimId !== claimId || row.recovery === 'resume') return false
  if (row.state === 'failed_retryable') return true
  if (row.state === 'in_progress') Object.assign(row, { state: 'failed_retryable', dueAt: model.nowMs })
  else if (row.state === 'unknown' && !isSaidToHaveHappened(model, key)) backAgain(row, model.nowMs)
  else return false
  return true
}

function isSaidToHaveHappened({ evidence }: StoreModel, key: string): boolean {
  const generation = generationOf(evidence, key)
  return evidence.pieces.some(
    piece => piece.key === key && piece.generation === generation && piece.verdict !== 'never-happened',
  )
}

/** Which of several dead rows a bounded sweep takes is the store's choice: it reports them, and each is checked. */
export function sweepable(model: StoreModel): string[] {
  const sweeps = (row: ModelRow) => overdue(model, row) && (row.recovery !== 'resume' || isHeld(model, row))
  return [...model.rows].filter(([, row]) => sweeps(row)).map(([key]) => key)
}

export function sweep(model: StoreModel, key: string): 'unknown' | 'failed_retryable' | 'must not be swept' {
  const row = model.rows.get(key)
  if (!row || !sweepable(model).includes(key)) return 'must not be swept'
  const to = isHeld(model, row) ? 'unknown' : 'failed_retryable'
  if (to === 'unknown') becomeUnknown(model, row)
  row.state = to
  row.dueAt = model.nowMs
  row.crashes += 1
  return to
}

/** What a worker is offered: phased rows that a claim would be granted, other than as absent. */
export function resumable(model: StoreModel): string[] {
  const grants = (row: ModelRow) => reasonToGrant(model, row, row.fingerprint) ?? 'expired'
  const phased = [...model.rows].filter(([, row]) => row.recovery === 'resume')
  return phased.filter(([, row]) => grants(row) !== 'expired').map(([key]) => key)
}

export function reapable(model: StoreModel): string[] {
  return [...model.rows].filter(([, row]) => expired(model, row)).map(([key]) => key)
}

export function reaped(model: StoreModel, key: string): void {
  model.rows.delete(key)
  dropEvidence(model.evidence, key)
}

export function strippable(model: StoreModel): string[] {
  return [...model.rows].filter(([, row]) => gone(model, row) && !row.stripped).map(([key]) => key)
}

export function strip(model: StoreModel, key: string): void {
  const row = model.rows.get(key)
  if (row) Object.assign(row, { stripped: true, journal: undefined })
  dropEvidence(model.evidence, key)
}

export function forget(model: StoreModel, key: string): State | 'forgotten' | 'not-found' {
  const row = model.rows.get(key)
  if (row?.state !== 'completed') return row?.state ?? 'not-found'
  model.acts.push({ key, act: 'forget' })
  model.rows.delete(key)
  endLife(model.evidence, key)
  return 'forgotten'
}
