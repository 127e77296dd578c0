/** One phase: a transaction with the function's writes, the phase's value and the recovery point. */
import { sleep } from '../../ports/clock.ts'
import { committedByHandler } from '../kinds/atomic-misuse.ts'
import { type BoundedEnd, boundedTransaction, type Edges } from '../store/transaction.ts'
import { faultPoint } from '../../ports/telemetry.ts'
import { boundedJson, fromJson } from './json.ts'
import { halt, nextStep, type StepRun, storeUnavailable, whileRunning } from './step-run.ts'

/** Serialization failures and deadlocks pass by themselves; a phase that meets more than these competes for a hot row. */
const triesMax = 5
const pauseMs = 20
/** As for an atomic COMMIT: a server that holds the lock longer is not answering. */
const commitWaitMs = 5_000

export async function runPhase<Tx>(run: StepRun<Tx>, name: string, work: (tx: Tx) => unknown): Promise<unknown> {
  const { position, known } = nextStep(run, 'phase', name)
  if (known !== undefined) return fromJson(known.value)
  return whileRunning(run, name, () => commitPhase(run, { position, name, work }))
}

interface Phase<Tx> {
  readonly position: number
  readonly name: string
  readonly work: (tx: Tx) => unknown
}

async function commitPhase<Tx>(run: StepRun<Tx>, { position, name, work }: Phase<Tx>): Promise<unknown> {
  for (let tries = 0; tries < triesMax; tries++) {
    const inside: Inside = { lost: false, result: undefined }
    const end = await boundedTransaction(run.core, run.transactor, (tx, edges) =>
      inTransaction(run, { position, name, work, inside, tx, edges }),
    )
    faultPoint('phase:after-commit')
    const done = await conclude(run, { position, end, inside })
    if (done === 'done') return fromJson(inside.result)
    await sleep(run.core.clock, pauseMs * 2 ** tries * run.core.clock.random())
  }
  return halt(run, {
    kind: 'retryable',
    errorCode: 'conflict',
    cause: new Error(`${name}: every try met another transaction`),
  })
}

interface Inside {
  lost: boolean
  result: string | undefined
}

interface InTransaction<Tx> extends Phase<Tx> {
  readonly inside: Inside
  readonly tx: Tx
  readonly edges: Edges
}

async function inTransaction<Tx>(run: StepRun<Tx>, phase: InTransaction<Tx>): Promise<'commit' | 'rollback'> {
  const { steps, claim, leaseMs } = run
  const { position, name, inside, tx, edges } = phase
  inside.lost = (await edges.first(() => steps.enterPhase(tx, claim))) === 'claim-lost'
  if (inside.lost) return 'rollback'
  inside.result = boundedJson(`${run.operation}: the value of the phase ${name}`, await phase.work(tx))
  // The claim is checked in the transaction itself: a run that was replaced while it worked rolls its writes back.
  const done = { position, name, value: inside.result }
  const written = await edges.last(() => steps.recordPhase(tx, claim, done, leaseMs))
  inside.lost = written === 'claim-lost'
  faultPoint('phase:before-commit')
  return inside.lost ? 'rollback' : 'commit'
}

interface PhaseResult {
  readonly position: number
  readonly end: BoundedEnd
  readonly inside: Inside
}

async function conclude<Tx>(run: StepRun<Tx>, { position, end, inside }: PhaseResult): Promise<'done' | 'again'> {
  if (inside.lost) return halt(run, { kind: 'claim-lost' })
  switch (end.kind) {
    case 'committed':
      return 'done'
    case 'conflict':
    case 'rolled-back':
      return 'again'
    case 'raised':
      throw end.error
    case 'unavailable':
      return halt(run, { kind: 'retryable', errorCode: storeUnavailable, cause: end.cause })
    case 'overloaded':
      return halt(run, { kind: 'retryable', errorCode: 'overloaded', cause: end.cause })
    case 'misused':
      return halt(run, { kind: 'retryable', errorCode: 'transaction-rolled-back', cause: end.cause })
    case 'ended-by-handler':
      return afterHandlerEnd(run, end)
    case 'commit-unknown':
      return afterLostCommit(run, position)
  }
}

/** Its writes are committed and its recovery point is not, or neither is: in doubt it must not run again. */
function afterHandlerEnd<Tx>(
  run: StepRun<Tx>,
  { how, error }: Extract<BoundedEnd, { kind: 'ended-by-handler' }>,
): never {
  const cause = new Error('the phase ended its transaction itself: nested transactions go through its tx', {
    cause: error,
  })
  if (how === 'rolled-back') return halt(run, { kind: 'retryable', errorCode: 'transaction-rolled-back', cause })
  return halt(run, { kind: 'unknown', errorCode: committedByHandler, cause })
}

/** The identity's lock ends with the old transaction; then the journal shows whether it committed. */
async function afterLostCommit<Tx>(run: StepRun<Tx>, position: number): Promise<'done' | 'again'> {
  const { core, transactor, steps, claim } = run
  try {
    const read = () => transactor.readAfterCommit(claim.id, commitWaitMs)
    const record = await core.calls.call('read after commit', read, 2 * commitWaitMs)
    if (record?.claimId !== claim.claimId || record.fence !== claim.fence) return halt(run, { kind: 'claim-lost' })
    const journal = await core.calls.call('read journal', () => steps.readJournal(claim.id))
    if (journal !== undefined && journal.steps === undefined) return halt(run, { kind: 'abandon', cause: journal.why })
    return journal?.steps.some(step => step.position === position) === true ? 'done' : 'again'
  } catch (cause) {
    if (run.halted !== undefined) throw run.halted
    return halt(run, { kind: 'abandon', cause })
  }
}
