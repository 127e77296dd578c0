/** Atomic: key, business rows and answer in one commit of the store's own database. */
import { sleep } from '../../ports/clock.ts'
import { LatchkeyError, misconfigured, unreachable } from '../../ports/errors.ts'
import { faultPoint } from '../../ports/telemetry.ts'
import type { AtomicRequest, HandlerEnd } from '../../ports/store.ts'
import { type Answer, type ExecuteRequest, inProgress, isInProgress, unavailable, type Work } from '../answer.ts'
import { recordMisuseLater } from '../audit/misuse.ts'
import type { AtomicExecution } from '../execution.ts'
import { engine } from '../internal.ts'
import { withLimits } from '../limits/with-limits.ts'
import type { AtomicOperation, AtomicRunRequest, Shared } from '../operation.ts'
import { atomicRunChecks, operationChecks } from '../option-checks.ts'
import { boundSettings, type OperationOptions, type Settings, settingsOf } from '../options.ts'
import { admit, admitChecked, tracked } from '../run/admit.ts'
import { answerFromRow, grantOf } from '../run/answer-from-row.ts'
import { lookOnly } from '../run/look.ts'
import { attemptFunction, functionRuns, runRequest } from '../run-function.ts'
import type { Core } from '../runtime.ts'
import { transactorOf } from '../store/carry.ts'
import { type BoundedEnd, boundedTransaction, unbounded } from '../store/transaction.ts'
import {
  afterConflict,
  afterLostCommit,
  afterRollback,
  busy,
  done,
  rememberUnknown,
  type Step,
} from './atomic-endings.ts'
import { afterAbort, afterHandlerEnd, rolledBack, savepointsNeeded } from './atomic-misuse.ts'
import {
  atomicRequest,
  type AtomicRun,
  commits,
  countStored,
  type Ended,
  type Inside,
  isUnknown,
  reserveAndRun,
} from './atomic-run.ts'

/** As for guarded work: a row that keeps changing hands is contended. */
const looksMax = 5

export function atomicOperation<Tx, C>(
  core: Core<Tx>,
  shared: Shared<C>,
  { name, options }: { readonly name: string; readonly options: OperationOptions<C> },
): AtomicOperation<Tx, C> {
  const transactor = transactorOf(core.store, name)
  const settings = boundSettings(settingsOf(name, options, operationChecks), core, { ...shared, name })
  if (settings.onMissingKey === 'run-unprotected') {
    throw misconfigured(
      `${name}: an atomic operation needs a key, because its rows commit with it. Leave onMissingKey at 'refuse'`,
    )
  }
  const execute = admit<Tx, C, Work<AtomicExecution<Tx>>>(core, settings, (request, work) =>
    executeAtomic(core, settings, { transactor, request, work }),
  )
  // In a transaction of the caller's nothing waits: it would hold the caller's locks.
  const waitless = { ...settings, onInProgress: 'refuse' } as const
  const owner = { name, settings, clock: core.clock }
  const answerTo = async (given: AtomicRunRequest, handler: (x: AtomicExecution<Tx>) => unknown): Promise<Answer> => {
    const { tx } = given
    if (tx === undefined && 'tx' in given) throw undefinedTx(name)
    const request = runRequest(owner, given, atomicRunChecks)
    const work: Work<AtomicExecution<Tx>> = x => attemptFunction(handler, x)
    const once = withLimits(core, settings.gates?.waitless, (asked: ExecuteRequest) =>
      executeInTransaction(core, settings, { transactor, request: asked, work, tx }),
    )
    if (tx === undefined) return execute(request, work)
    return recordMisuseLater(core, request, admitChecked(core, waitless, { request, work, once }))
  }
  return {
    kind: 'atomic',
    name,
    [engine]: { name, settings, shared, execute, look: lookOnly(core, settings) },
    ...functionRuns(owner, answerTo),
  }
}

/** A transaction of ours in its place would commit the key without the caller's rows. */
function undefinedTx(name: string): LatchkeyError {
  return new LatchkeyError(
    'not-a-transaction',
    `run of ${name} was given tx: undefined, which is what ORMs return outside a transaction: open yours first, or leave tx out and use the one that Latchkey opens`,
  )
}

async function executeAtomic<Tx, C>(core: Core<Tx>, settings: Settings<C>, run: AtomicRun<Tx>): Promise<Answer> {
  const { id } = run.request.identity
  if (core.executing.has(id)) return answerBesideDuplicate(core, settings, run.request)
  core.executing.add(id)
  let answer: Answer
  try {
    answer = await lookAndRun(core, settings, run)
  } finally {
    core.executing.delete(id)
  }
  // A refused caller wakes no other one: each would look at once, be refused as well, and wake the next.
  if (!isInProgress(answer)) core.waiters.wake(id)
  return answer
}

/**
 * A concurrent duplicate in this process has a transaction for the key. A thousand more of them would take every connection only to be
 * refused: they share one read of what is committed instead.
 */
async function answerBesideDuplicate<Tx, C>(
  core: Core<Tx>,
  settings: Settings<C>,
  request: ExecuteRequest,
): Promise<Answer> {
  const { identity } = request
  const read = () => core.store.read(identity.id)
  const record = await core.calls.call('read', read).catch((cause: unknown) => ({ cause }))
  if (record !== undefined && 'cause' in record) return unavailable(record.cause)
  if (record === undefined || record.expired) return busy(core, request)
  const seen = await answerFromRow(core, settings, { record, request })
  return seen.kind === 'answer' ? seen.answer : busy(core, request)
}

async function lookAndRun<Tx, C>(core: Core<Tx>, settings: Settings<C>, run: AtomicRun<Tx>): Promise<Answer> {
  if (!core.calls.circuit.admits()) return unavailable(new Error('the store failed repeatedly'))
  // As for claims: an existing row is reserved only for a caller that was allowed to see it.
  if (run.request.authorizeReplay !== undefined) run = { ...run, takeOver: 'none' }
  for (let look = 0; look < looksMax; look++) {
    const ended = await oneTransaction(core, settings, run)
    if (ended.kind === 'answer') return ended.answer
    const { record, ran } = ended
    const seen = await answerFromRow(core, settings, { record, request: run.request })
    if (seen.kind === 'answer') return seen.answer
    // The handler is never called twice for one caller: its request and response are used up.
    if (ran) return unavailable(new Error('rolled back: another transaction held this key'))
    run = { ...run, request: seen.request, takeOver: run.takeOver && grantOf(record) }
  }
  return inProgress()
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

interface TransactionResult<Tx> {
  readonly run: AtomicRun<Tx>
  readonly row: AtomicRequest
  readonly end: BoundedEnd
  readonly ended: Ended | undefined
}

/** What the end of the transaction and the end of its handler come to together. */
async function conclude<Tx, C>(
  core: Core<Tx>,
  settings: Settings<C>,
  { run, row, end, ended }: TransactionResult<Tx>,
): Promise<Step> {
  if (end.kind === 'overloaded') return done(unavailable(end.cause))
  if (end.kind === 'misused') return done(rolledBack(core, row, end.cause))
  if (end.kind === 'conflict' || ended?.kind === 'taken') return afterConflict(core, row)
  // An unknown outcome of the handler is recorded also when the end of its transaction cannot be seen.
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
  // It was to be committed and is rolled back: a statement failed, and the answer is about rows that are gone.
  if (ran.wasReturned) return done(await afterAbort(core, ran))
  return done(await afterRollback(core, settings, ran))
}

/** In the caller's own transaction: the caller commits, and errors of its database reach the caller. */
async function executeInTransaction<Tx, C>(
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
      if (judgement.kind === 'unknown') await recordUnknown(core, settings, row, judgement.errorCode)
      const answer = { kind: 'executed', attempt, stored: judgement.kind === 'keep' ? 'yes' : 'not-stored' } as const
      countStored(core, { row, from: inside.from, answer })
      return answer
    }
    case 'seen': {
      const seen = await answerFromRow(core, settings, { record: ended.record, request })
      return seen.kind === 'answer' ? seen.answer : inProgress()
    }
    case 'busy':
    case 'taken':
      return inProgress()
    default:
      return unreachable(ended)
  }
}

/** Two short statements; if they take longer, they wait for the caller's own transaction. */
const recordWaitMs = 500

/**
 * Outside the caller's transaction, which ends by this very error. Where that transaction is the only writer, as in SQLite, the
 * unknown is recorded when it has ended, and the caller is not kept from ending it.
 */
async function recordUnknown<Tx, C>(
  core: Core<Tx>,
  settings: Settings<C>,
  row: AtomicRequest,
  errorCode: string,
): Promise<void> {
  const recorded = tracked(core, rememberUnknown(core, settings, { row, errorCode }))
  await Promise.race([recorded, sleep(core.clock, recordWaitMs)])
}
