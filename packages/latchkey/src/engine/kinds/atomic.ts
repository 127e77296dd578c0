/** Atomic: key, business rows and answer in one commit of the store's own database. */
import { sleep } from '../../ports/clock.ts'
import { unreachable } from '../../ports/errors.ts'
import type { AtomicRequest, GrantedFrom, HandlerEnd, KeyRecord, TakeOver, Transactor } from '../../ports/store.ts'
import { type Answer, type Attempt, type ExecuteRequest, refused, unavailable, type Work } from '../answer.ts'
import { busy, afterConflict, afterLostCommit, afterRollback, rememberUnknown } from './atomic-endings.ts'
import { done, type Step } from './atomic-endings.ts'
import { afterAbort, afterHandlerEnd, rolledBack, savepointsNeeded } from './atomic-misuse.ts'
import { type BoundedEnd, boundedTransaction, type Edges, unbounded } from '../store/transaction.ts'
import type { Core } from '../runtime.ts'
import { type AtomicExecution, type Listening, saidNotExecuted } from '../execution.ts'
import { faultPoint } from '../store/call.ts'
import { attemptOf, execution, neverFires } from './guarded.ts'
import { type Judgement, judge } from '../rules/judge.ts'
import { answerSeen, grantOf } from '../run/answer-from-row.ts'
import { type Settings, tombstoneOf } from '../options.ts'
import { tracked } from '../run/admit.ts'

/** As for guarded work: a row that keeps changing hands is contended. */
const looksMax = 5

export interface AtomicRun<Tx> {
  readonly transactor: Transactor<Tx>
  readonly request: ExecuteRequest
  readonly work: Work<AtomicExecution<Tx>>
  readonly takeOver?: TakeOver | undefined
}

/** How one transaction of ours ended. `ran`: the handler was called in it. */
type Ended =
  | Ran
  | { readonly kind: 'seen'; readonly record: KeyRecord }
  | { readonly kind: 'busy' }
  | { readonly kind: 'taken' }

interface Ran {
  readonly kind: 'ran'
  readonly attempt: Attempt
  readonly judgement: Judgement
  /** Why its answer could not be recorded in the transaction. */
  readonly spoilt?: 'aborted' | 'ended'
}

export async function executeAtomic<Tx, C>(core: Core<Tx>, settings: Settings<C>, run: AtomicRun<Tx>): Promise<Answer> {
  const { id } = run.request.identity
  if (core.executing.has(id)) return answerBesideTwin(core, settings, run.request)
  core.executing.add(id)
  try {
    return await lookAndRun(core, settings, run)
  } finally {
    core.executing.delete(id)
  }
}

/**
 * A twin of this process has a transaction for the key. A thousand more of them would take every connection only to be refused:
 * they share a look at what is committed instead.
 */
async function answerBesideTwin<Tx, C>(
  core: Core<Tx>,
  settings: Settings<C>,
  request: ExecuteRequest,
): Promise<Answer> {
  const { identity } = request
  const read = () => core.store.read(identity.id)
  const record = await core.calls.call('read', read).catch((cause: unknown) => ({ cause }))
  if (record !== undefined && 'cause' in record) return unavailable(record.cause)
  if (record === undefined || record.expired) return busy(core, request)
  const seen = await answerSeen(core, settings, { record, request })
  return seen.kind === 'answer' ? seen.answer : busy(core, request)
}

async function lookAndRun<Tx, C>(core: Core<Tx>, settings: Settings<C>, run: AtomicRun<Tx>): Promise<Answer> {
  if (!core.calls.circuit.admits()) return unavailable(new Error('the store failed repeatedly'))
  // As for claims: a row of others is only reserved for a caller who was allowed to see it.
  if (run.request.authorizeReplay !== undefined) run = { ...run, takeOver: 'none' }
  for (let look = 0; look < looksMax; look++) {
    const ended = await oneTransaction(core, settings, run)
    if (ended.kind === 'answer') return ended.answer
    const { record, ran } = ended
    const seen = await answerSeen(core, settings, { record, request: run.request })
    if (seen.kind === 'answer') return seen.answer
    // The handler is never called twice for one caller: its request and response are used up.
    if (ran) return unavailable(new Error('rolled back: another transaction held this key'))
    run = { ...run, request: seen.request, takeOver: run.takeOver && grantOf(record) }
  }
  return refused('in-progress', { retryAfterMs: 1_000 })
}

async function oneTransaction<Tx, C>(core: Core<Tx>, settings: Settings<C>, run: AtomicRun<Tx>): Promise<Step> {
  const row = atomicRequest(core, settings, run)
  const inside: Inside = {}
  const end = await boundedTransaction(
    core,
    run.transactor,
    async (tx, edges) => {
      const { transactor, request, work } = run
      const ended = await reserveAndRun(core, settings, { transactor, request, work, row, tx, edges, inside })
      inside.ended = ended
      faultPoint('atomic:before-commit')
      return ended.kind === 'ran' && commits(ended) && ended.spoilt === undefined ? 'commit' : 'rollback'
    },
    row,
  )
  faultPoint('atomic:after-commit')
  const step = await conclude(core, settings, { run, row, end, ended: inside.ended })
  if (step.kind === 'answer') countStored(core, { row, from: inside.from, answer: step.answer })
  return step
}

interface Concluding<Tx> {
  readonly run: AtomicRun<Tx>
  readonly row: AtomicRequest
  readonly end: BoundedEnd
  readonly ended: Ended | undefined
}

/** What the end of the transaction and the end of its handler come to together. */
async function conclude<Tx, C>(
  core: Core<Tx>,
  settings: Settings<C>,
  { run, row, end, ended }: Concluding<Tx>,
): Promise<Step> {
  if (end.kind === 'overloaded') return done(refused('overloaded', { cause: end.cause, retryAfterMs: 1_000 }))
  if (end.kind === 'misused') return done(rolledBack(core, row, end.cause))
  if (end.kind === 'conflict' || ended?.kind === 'taken') return afterConflict(core, row)
  // What the handler does not know is remembered also when the end of its transaction cannot be seen.
  if (end.kind === 'unavailable' && !isUnknown(ended)) return done(unavailable(end.cause))
  if (end.kind === 'raised' && !isUnknown(ended)) return done(unavailable(end.error))
  if (ended === undefined) return done(unavailable(undefined))
  if (ended.kind === 'busy') return done(busy(core, run.request))
  if (ended.kind === 'seen') return { kind: 'look-again', record: ended.record, ran: false }
  if (end.kind === 'committed') return done({ kind: 'executed', attempt: ended.attempt, stored: 'yes' })
  if (end.kind === 'commit-unknown')
    return done(await afterLostCommit(core, { row, attempt: ended.attempt, transactor: run.transactor }))
  const { attempt, judgement } = ended
  const ran = { transactor: run.transactor, row, attempt, judgement, wasReturned: commits(ended) }
  if (end.kind === 'ended-by-handler') return done(await afterHandlerEnd(core, settings, { ...ran, how: end.how }))
  // Asked to commit and rolled back: a statement failed. Its answer is about rows that are gone.
  if (ran.wasReturned) return done(await afterAbort(core, ran))
  return done(await afterRollback(core, settings, ran))
}

interface Inside {
  ended?: Ended
  /** What the row was reserved from. */
  from?: GrantedFrom
}

interface Stored {
  readonly row: AtomicRequest
  readonly from: GrantedFrom | undefined
  readonly answer: Answer
}

/** Once for a key: what was rolled back has created nothing. */
function countStored<Tx>(core: Core<Tx>, { row, from, answer }: Stored): void {
  if (answer.kind !== 'executed' || answer.stored !== 'yes') return
  const { operation, id } = row.identity
  if (from === 'none' || from === 'expired') core.telemetry.count('reserve.created', { operation, identity: id })
  if (from === 'expired') core.telemetry.count('reserve.after_expiry', { operation })
}

interface InTransaction<Tx> extends AtomicRun<Tx> {
  readonly row: AtomicRequest
  readonly tx: Tx
  readonly edges: Edges
  /** Set as soon as the handler has ended: what follows may fail, and its end counts all the same. */
  readonly inside: Inside
}

async function reserveAndRun<Tx, C>(core: Core<Tx>, settings: Settings<C>, run: InTransaction<Tx>): Promise<Ended> {
  const { transactor, edges, tx, row } = run
  const reservation = await edges.first(() => transactor.reserve(tx, row))
  if (reservation.kind !== 'free') return reservation
  const { operation } = row.identity
  run.inside.from = reservation.from
  const context = atomicExecution(run, reservation.fence + 1)
  const startedAtMs = core.clock.monotonicMs()
  const attempt = await attemptOf(run.work, context)
  core.durations.add(operation, core.clock.monotonicMs() - startedAtMs)
  const { storeStatus, outcomeBytesMax, outcomeVersion, neverStored } = settings
  const rules = { onFailure: 'rerun', storeStatus, outcomeBytesMax, outcomeVersion, neverStored } as const
  const judgement = judge(attempt, rules, context[saidNotExecuted])
  const ended: Ran = { kind: 'ran', attempt, judgement }
  run.inside.ended = ended
  if (judgement.kind !== 'keep' || !commits(ended)) return ended
  const { outcome } = judgement
  // The caller of a transaction that was handed in asks more in it; ours ends here.
  const recorded = await edges.last(() =>
    edges === unbounded || transactor.recordLast === undefined
      ? transactor.record(tx, row, outcome, reservation.fence)
      : transactor.recordLast(tx, row, outcome, reservation.fence),
  )
  switch (recorded) {
    case 'recorded':
      return ended
    case 'taken':
      return { kind: 'taken' }
    case 'aborted':
    case 'ended':
      return { ...ended, spoilt: recorded }
    default:
      return unreachable(recorded)
  }
}

/** A throw rolls its business rows back, also when it was rendered as an answer that is kept. */
function commits({ attempt, judgement }: { attempt: Attempt; judgement: Judgement }): boolean {
  return judgement.kind === 'keep' && (attempt.kind === 'unreplayable' || attempt.error === undefined)
}

function isUnknown(ended: Ended | undefined): boolean {
  return ended?.kind === 'ran' && ended.judgement.kind === 'unknown'
}

function atomicExecution<Tx>({ request, tx }: InTransaction<Tx>, fence: number): AtomicExecution<Tx> & Listening {
  // Onto the object itself: a copy would look at its signal.
  return Object.assign(execution(request, { attempt: fence, fence, signalOf: neverFires }), { tx })
}

function atomicRequest<Tx, C>(core: Core<Tx>, settings: Settings<C>, run: AtomicRun<Tx>): AtomicRequest {
  const { identity, fingerprint, description } = run.request
  const { retentionMs } = settings
  const claimId = core.clock.randomId()
  const { takeOver } = run
  return { identity, fingerprint, description, claimId, retentionMs, tombstoneMs: tombstoneOf(settings), takeOver }
}

/** In the caller's own transaction: the caller commits, and whatever its database throws is the caller's to see. */
export async function executeInTransaction<Tx, C>(
  core: Core<Tx>,
  settings: Settings<C>,
  run: AtomicRun<Tx> & { readonly tx: unknown },
): Promise<Answer> {
  const { transactor, request } = run
  const tx = await transactor.adopt(run.tx)
  const row = atomicRequest(core, settings, run)
  const inside: Inside = {}
  let ended: Ended
  let how: 'open' | HandlerEnd
  try {
    ended = await reserveAndRun(core, settings, { ...run, tx, row, edges: unbounded, inside })
  } finally {
    how = transactor.endOf(tx)
  }
  switch (ended.kind) {
    case 'ran': {
      const { attempt, judgement } = ended
      const ran = { transactor, row, attempt, judgement, wasReturned: commits(ended) }
      if (how !== 'open') return afterHandlerEnd(core, settings, { ...ran, how })
      if (ended.spoilt !== undefined) return rolledBack(core, row, savepointsNeeded(row))
      if (judgement.kind === 'unknown') await noteUnknown(core, settings, row, judgement.errorCode)
      const answer = { kind: 'executed', attempt, stored: judgement.kind === 'keep' ? 'yes' : 'declined' } as const
      countStored(core, { row, from: inside.from, answer })
      return answer
    }
    case 'seen': {
      const seen = await answerSeen(core, settings, { record: ended.record, request })
      return seen.kind === 'answer' ? seen.answer : refused('in-progress', { retryAfterMs: 1_000 })
    }
    case 'busy':
    case 'taken':
      return refused('in-progress', { retryAfterMs: 1_000 })
    default:
      return unreachable(ended)
  }
}

/** Two short statements; whoever takes longer waits for the caller's own transaction. */
const noteWaitMs = 500

/**
 * Outside the caller's transaction, which ends by this very error. Where that holds the only writer's place, as in SQLite, the
 * note is written when it has ended, and the caller is not kept from ending it.
 */
async function noteUnknown<Tx, C>(
  core: Core<Tx>,
  settings: Settings<C>,
  row: AtomicRequest,
  errorCode: string,
): Promise<void> {
  const noted = tracked(core, rememberUnknown(core, settings, { row, errorCode }))
  await Promise.race([noted, sleep(core.clock, noteWaitMs)])
}
