/**
 * The store for tests and for one process: everything is gone when the process ends. Each method runs without an await
 * between its reading and its writing, which is what makes it atomic here.
 */
import { checkOptions, type ChecksOf } from '../../ports/check-options.ts'
import { systemClock, type Clock } from '../../ports/clock.ts'
import type {
  Act,
  Claim,
  ClaimRequest,
  ClaimResult,
  Failure,
  ForgetResult,
  GrantedFrom,
  Listing,
  LostClaim,
} from '../../ports/store.ts'
import type { OwnerResult, Page, Store, Swept, UnparkResult } from '../../ports/store.ts'
import { misconfigured } from '../../ports/errors.ts'
import { having } from '../../ports/option-kinds.ts'
import type { Outcome } from '../../ports/outcome.ts'
import { createNotes } from './reconcile/evidence-and-audit.ts'
import { memoryReconciliation } from './reconcile/index.ts'
import { completedRow, grantedOver, grantedRow, isDead, isGone, isOver, isOwner, strippedRow } from './row.ts'
import { type Row, toRecord, unknownRow } from './row.ts'
import { backAgain, settle } from './reconcile/settle.ts'
import type { Tables } from './tables.ts'

export interface MemoryStoreOptions {
  /** Where time comes from. Default: the process's clock. Replace it in a test that lets leases run out. */
  readonly clock?: Clock
}

const listLimitMax = 1_000

const memoryChecks: ChecksOf<MemoryStoreOptions> = { clock: having('a clock', 'nowMs', 'monotonicMs') }

export function memoryStore(options: MemoryStoreOptions = {}): Store {
  checkOptions('memoryStore', options, memoryChecks)
  const { clock = systemClock } = options
  const tables: Tables = {
    ...{ rows: new Map(), notes: createNotes(), received: new Map(), ledgers: new Map() },
    now: steadyTime(clock),
  }
  const { rows, notes, now } = tables
  return {
    name: 'memory',
    traits: {
      transactional: false,
      durable: false,
      clock: 'process',
      processes: 'one',
      fence: 'dense',
      connections: undefined,
    },
    transactor: undefined,
    steps: undefined,
    outbox: undefined,
    reconciliation: memoryReconciliation(tables),

    async claim(request) {
      const row = rows.get(request.identity.id)
      if (row === undefined) return grant(tables, undefined, request, 'none')
      const from = grantedOver(row, request, now())
      return from ? grant(tables, row, request, from) : { kind: 'seen', record: toRecord(row, now()) }
    },
    async enqueue({ identity }) {
      throw misconfigured(
        `${identity.operation} is deferred, and deferred work needs a transactional store: use SQLite or PostgreSQL`,
      )
    },
    async read(id) {
      const row = rows.get(id)
      return row && toRecord(row, now())
    },
    async heartbeat(claim, leaseMs) {
      const row = rows.get(claim.id)
      if (row?.state !== 'in_progress' || !isOwner(row, claim)) return 'claim-lost'
      rows.set(row.id, { ...row, lockedUntilMs: now() + leaseMs })
      return 'written'
    },
    complete: async (claim, outcome, retentionMs) => complete(tables, claim, { outcome, retentionMs }),
    fail: async (claim, failure) => fail(tables, claim, failure),
    async release(id, claimId) {
      const row = rows.get(id)
      if (row?.state !== 'in_progress' || row.claimId !== claimId) return 'not-yours'
      rows.set(id, { ...row, state: 'failed_retryable', dueAtMs: now() })
      return 'released'
    },
    releaseMany: async claims => claims.filter(claim => releaseLost(tables, claim)).map(({ claimId }) => claimId),
    sweep: async options => sweep(tables, options),
    // Phased work needs a database: there is none here.
    resumable: async () => [],
    park: async (claim, cause) => park(tables, claim, cause),
    reap: async options => reap(tables, options),
    list: async listing => list(tables, listing),
    async inspect(id) {
      const row = rows.get(id)
      const record = row && toRecord(row, now())
      return { record, evidence: notes.evidenceOf(id), audit: notes.auditOf(id) }
    },
    settle: async (id, verdict, act, retentionMs) => settle(tables, id, { verdict, act, retentionMs }),
    forget: async (id, act) => forget(tables, id, act),
    unpark: async (id, act) => unpark(tables, id, act),
  }
}

/** Dates from the wall clock, progress from the monotonic one: setting the machine's clock ends no lease. */
function steadyTime(clock: Clock): () => number {
  const offsetMs = clock.nowMs() - clock.monotonicMs()
  return () => Math.floor(offsetMs + clock.monotonicMs())
}

function grant({ rows, now }: Tables, row: Row | undefined, request: ClaimRequest, from: GrantedFrom): ClaimResult {
  const granted = grantedRow(row, request, from, now())
  rows.set(granted.id, granted)
  const { id, fence, claimId, attempts, crashes } = granted
  return { kind: 'won', claim: { id, fence, claimId }, attempt: attempts, crashes, from }
}

function complete(
  { rows, notes, now }: Tables,
  claim: Claim,
  answer: { outcome: Outcome; retentionMs: number },
): OwnerResult {
  const row = rows.get(claim.id)
  if (row !== undefined && isOwner(row, claim)) {
    if (row.state === 'completed' && row.answeredBy === 'owner') return 'written'
    if (row.state === 'in_progress' || row.state === 'unknown') {
      if (row.state === 'unknown') notes.addEvidence(row.id, lateOwner('happened', true, now()))
      rows.set(row.id, completedRow(row, { ...answer, by: 'owner' }, now()))
      return 'written'
    }
  }
  notes.addEvidence(claim.id, lateOwner('happened', false, now()))
  return 'claim-lost'
}

function fail({ rows, notes, now }: Tables, claim: Claim, failure: Failure): OwnerResult {
  const row = rows.get(claim.id)
  const verdict = failure.to === 'unknown' ? 'unknown' : 'never-happened'
  if (row !== undefined && isOwner(row, claim)) {
    // The same word again after a lost reply, or after the sweeper said it first.
    if (row.state === failure.to || (verdict === 'never-happened' && isBackByOwner(row))) return 'written'
    if (row.state === 'in_progress' || row.state === 'unknown') {
      if (row.state === 'unknown') notes.addEvidence(row.id, lateOwner(verdict, true, now()))
      rows.set(row.id, { ...failedRow(row, failure, now()), lastErrorCode: failure.errorCode })
      return 'written'
    }
  }
  notes.addEvidence(claim.id, lateOwner(verdict, false, now()))
  return 'claim-lost'
}

/** Whether the claim is over. */
function releaseLost({ rows, notes, now }: Tables, { id, claimId }: LostClaim): boolean {
  const row = rows.get(id)
  if (row?.claimId !== claimId || row.recovery === 'resume') return false
  if (row.state === 'failed_retryable') return true
  if (row.state === 'in_progress') {
    rows.set(id, { ...row, state: 'failed_retryable', dueAtMs: now() })
    return true
  }
  // What a reconciler would apply stands in the way; what was said of an earlier life of the key does not.
  const happened = notes
    .namedOf(id)
    .some(({ verdict, atMs }) => (verdict === 'happened' || verdict === 'declined') && atMs >= row.createdAtMs)
  if (row.state !== 'unknown' || happened) return false
  notes.addEvidence(id, lateOwner('never-happened', true, now()))
  rows.set(id, { ...backAgain(row, now()), answeredBy: 'owner' })
  return true
}

function isBackByOwner({ state, answeredBy }: Row): boolean {
  return state === 'pending' && answeredBy === 'owner'
}

function failedRow(row: Row, { to, dueInMs }: Failure, nowMs: number): Row {
  if (to === 'unknown') return unknownRow(row, nowMs)
  if (row.state === 'unknown') return { ...backAgain(row, nowMs + dueInMs), answeredBy: 'owner' }
  return { ...row, state: to, dueAtMs: nowMs + dueInMs }
}

function park({ rows, now }: Tables, claim: Claim, cause: string): OwnerResult {
  const row = rows.get(claim.id)
  if (row === undefined || !isOwner(row, claim)) return 'claim-lost'
  // The same word again after a lost reply.
  if (row.parked && row.state === 'failed_retryable') return 'written'
  if (row.state !== 'in_progress') return 'claim-lost'
  rows.set(row.id, { ...row, state: 'failed_retryable', parked: true, dueAtMs: now(), lastErrorCode: cause })
  return 'written'
}

function lateOwner(verdict: 'happened' | 'never-happened' | 'unknown', applied: boolean, atMs: number) {
  return { source: 'late-owner', verdict, effect: undefined, applied, atMs } as const
}

function sweep({ rows, now }: Tables, { limit, id }: { limit: number; id?: string }): readonly Swept[] {
  const dead = [...rows.values()].filter(row => isDead(row, now()) && (id === undefined || row.id === id))
  return dead
    .filter(row => row.recovery !== 'resume')
    .slice(0, limit)
    .map(row => {
      const to = row.recovery === 'hold' ? 'unknown' : 'failed_retryable'
      const crashed = { ...row, crashes: row.crashes + 1, dueAtMs: now() }
      rows.set(row.id, to === 'unknown' ? unknownRow(crashed, now()) : { ...crashed, state: to })
      return { id: row.id, operation: row.operation, to }
    })
}

/** The row's evidence ends with its outcome, because it may hold a whole answer; its audit is kept for good. */
function reap({ rows, notes, now }: Tables, { limit }: { limit: number }): number {
  const over = [...rows.values()].filter(row => isOver(row, now())).slice(0, limit)
  for (const row of over) {
    if (isGone(row, now())) rows.set(row.id, strippedRow(row))
    else rows.delete(row.id)
    notes.dropEvidence(row.id)
  }
  return over.length
}

/** Ordered by id, so that a page continues where the last one ended whatever happened to the rows in between. */
function list({ rows, now }: Tables, { state, parked, operation, limit, after }: Listing): Page {
  const matching = [...rows.values()]
    .filter(row => state === undefined || row.state === state)
    .filter(row => parked === undefined || row.parked)
    .filter(row => operation === undefined || row.operation === operation)
    .filter(row => after === undefined || row.id > after)
    .sort((left, right) => (left.id < right.id ? -1 : 1))
  const page = matching.slice(0, Math.min(limit, listLimitMax))
  return {
    records: page.map(row => ({ ...toRecord(row, now()), outcome: undefined })),
    next: page.length < matching.length ? page.at(-1)?.id : undefined,
  }
}

function forget({ rows, notes, now }: Tables, id: string, act: Act): ForgetResult {
  const row = rows.get(id)
  if (row === undefined) return { kind: 'not-found' }
  if (row.state !== 'completed') return { kind: 'wrong-state', state: row.state }
  rows.delete(id)
  const detail = `fence ${row.fence}`
  notes.addAudit(id, { by: act.by, reason: act.reason, act: 'forget', atMs: now(), detail })
  return { kind: 'forgotten' }
}

/** Past its expiry, the row gets the time again that it was given: it is unparked to go on, not to be reaped. */
function unpark({ rows, notes, now }: Tables, id: string, act: Act): UnparkResult {
  const row = rows.get(id)
  if (row === undefined) return { kind: 'not-found' }
  if (!row.parked) return { kind: 'not-parked' }
  const atMs = now()
  const expiresAtMs = Math.max(row.expiresAtMs, atMs + row.expiresAtMs - row.createdAtMs)
  const doubt = row.doubt && { ...row.doubt, tries: 0, looking: false, lookUpAtMs: atMs }
  rows.set(id, { ...row, parked: false, dueAtMs: atMs, crashes: 0, expiresAtMs, doubt })
  const detail = `${row.lastErrorCode} fence ${row.fence}`
  notes.addAudit(id, { by: act.by, reason: act.reason, act: 'unpark', atMs, detail })
  return { kind: 'unparked' }
}
