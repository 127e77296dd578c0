/** What an atomic execution does when its transaction has ended in any other way than by a plain commit. */
import { LatchkeyError, unreachable } from '../../ports/errors.ts'
import type { Outcome } from '../../ports/outcome.ts'
import type { AtomicRequest, KeyRecord, Transactor } from '../../ports/store.ts'
import {
  type Answer,
  type Attempt,
  errorOf,
  type ExecuteRequest,
  inProgress,
  outcomeUnknown,
  unavailable,
} from '../answer.ts'
import { boundedTransaction } from '../store/transaction.ts'
import { claimToRecord } from '../run/claim.ts'
import type { Core } from '../runtime.ts'
import type { Judgement } from '../rules/judge.ts'
import { countInProgress } from '../run/answer-from-row.ts'
import type { Settings } from '../options.ts'

export type Step =
  | { readonly kind: 'answer'; readonly answer: Answer }
  /** Answer from this row. `ran`: the handler was called, and rolled back. */
  | { readonly kind: 'look-again'; readonly record: KeyRecord; readonly ran: boolean }

/** A lost COMMIT is decided by its transaction's lock; a server that holds it longer than this is not answering. */
const commitWaitMs = 5_000

/**
 * Rolled back because another transaction won. Under REPEATABLE READ and above, the reservation's read may have missed the
 * winner; a new transaction sees it. Without a winner the conflict was between business rows: the handler cannot be called
 * a second time for one caller, but the caller may retry at once.
 */
export async function afterConflict<Tx>(core: Core<Tx>, row: AtomicRequest): Promise<Step> {
  const record = await core.calls.call('read', () => core.store.read(row.identity.id)).catch(() => undefined)
  if (record !== undefined && !record.expired) return { kind: 'look-again', record, ran: true }
  return done(
    unavailable(new LatchkeyError('store-unavailable', 'rolled back: the transaction conflicted with another one')),
  )
}

/** Another transaction holds this identity, and nothing of it can be seen before it ends. */
export function busy<Tx>(core: Core<Tx>, request: Pick<ExecuteRequest, 'identity' | 'asksAgain'>): Answer {
  countInProgress(core, request)
  return inProgress(core.durations.leftMs(request.identity.operation, 0))
}

export interface LostCommit<Tx> {
  readonly row: AtomicRequest
  readonly attempt: Attempt
  readonly transactor: Transactor<Tx>
}

/** COMMIT was sent and no reply came. The row shows whether it committed; the handler is never run again blindly. */
export async function afterLostCommit<Tx>(
  core: Core<Tx>,
  { row, attempt, transactor }: LostCommit<Tx>,
): Promise<Answer> {
  const read = () => transactor.readAfterCommit(row.identity.id, commitWaitMs)
  try {
    const record = await core.calls.call('read after commit', read, 2 * commitWaitMs)
    if (record?.claimId === row.claimId) return { kind: 'executed', attempt, stored: 'yes' }
    return unavailable(new LatchkeyError('store-unavailable', 'the transaction did not commit'))
  } catch (cause) {
    return outcomeUnknown(cause)
  }
}

export interface RolledBack<Tx> {
  readonly transactor: Transactor<Tx>
  readonly row: AtomicRequest
  readonly attempt: Attempt
  readonly judgement: Judgement
}

export async function afterRollback<Tx, C>(
  core: Core<Tx>,
  settings: Settings<C>,
  ran: RolledBack<Tx>,
): Promise<Answer> {
  const { judgement, attempt } = ran
  switch (judgement.kind) {
    case 'retryable':
      return { kind: 'executed', attempt, stored: 'not-stored' }
    case 'unknown':
      await rememberUnknown(core, settings, { row: ran.row, errorCode: judgement.errorCode })
      return outcomeUnknown(errorOf(attempt))
    case 'keep':
      return { kind: 'executed', attempt, stored: await recordAlone(core, ran, judgement.outcome) }
    default:
      return unreachable(judgement)
  }
}

/** Stores an answer in a transaction without business rows: of a throw (a 4xx), for one. */
export async function recordAlone<Tx>(
  core: Core<Tx>,
  { transactor, row }: Pick<RolledBack<Tx>, 'transactor' | 'row'>,
  outcome: Outcome,
): Promise<'yes' | 'failed'> {
  const end = await boundedTransaction(core, transactor, async (tx, edges) => {
    const reservation = await edges.first(() => transactor.reserve(tx, row))
    if (reservation.kind !== 'free') return 'rollback'
    const recorded = await edges.last(() => transactor.record(tx, row, outcome, reservation.fence))
    return recorded === 'recorded' ? 'commit' : 'rollback'
  }).catch(() => undefined)
  return end?.kind === 'committed' ? 'yes' : 'failed'
}

/** The handler had an effect outside the database after all, and does not know how it ended. */
export async function rememberUnknown<Tx, C>(
  core: Core<Tx>,
  settings: Settings<C>,
  { row, errorCode }: { row: AtomicRequest; errorCode: string },
): Promise<void> {
  const expiresInMs = settings.holdMsMax + settings.retentionMs
  // Whichever claim has the row meanwhile: what may have happened is recorded.
  const takeOver = undefined
  const request = { ...row, recovery: 'hold', leaseMs: settings.leaseMs, expiresInMs, takeOver } as const
  const claimed = await claimToRecord(core, request)
  if (claimed.kind !== 'won')
    return core.telemetry.report('an unknown outcome could not be recorded', { identity: row.identity.id })
  const failure = { to: 'unknown', errorCode, dueInMs: 0 } as const
  // A failure here leaves the claim, and its dead lease becomes the same `unknown`.
  await core.calls.call('fail', () => core.store.fail(claimed.claim, failure)).catch(() => undefined)
}

export function done(answer: Answer): Step {
  return { kind: 'answer', answer }
}
