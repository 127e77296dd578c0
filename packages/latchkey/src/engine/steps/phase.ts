/** One phase: a transaction with the function's writes, the phase's value and the recovery point. */
import { sleep } from '../../ports/clock.ts'
import type { Phases } from '../../ports/steps.ts'
import type { Transactor } from '../../ports/store.ts'
import { committedByHandler } from '../kinds/atomic-misuse.ts'
import { type BoundedEnd, boundedTransaction, type Edges } from '../store/transaction.ts'
import { faultPoint } from '../../ports/telemetry.ts'
import type { OutboxMessage } from '../outbox.ts'
import { boundedJson, fromJson } from './json.ts'
import { halt, nextStep, type StepRun, storeUnavailable, whileRunning } from './step-run.ts'

/** Serialization failures and deadlocks pass by themselves; a phase that meets more than these competes for a hot row. */
const triesMax = 5
const pauseMs = 20
/** As for an atomic COMMIT: a server that holds the lock longer is not answering. */
const commitWaitMs = 5_000

/** What phases need of their store. */
export interface PhaseParts<Tx> {
  readonly transactor: Transactor<Tx>
  readonly phases: Phases<Tx>
  append(tx: Tx, message: OutboxMessage, owner: string): Promise<void>
}

export interface PhaseRequest<Tx> {
  readonly parts: PhaseParts<Tx>
  readonly name: string
  readonly work: (tx: Tx) => unknown
}

export async function runPhase<Tx>(run: StepRun<Tx>, { parts, name, work }: PhaseRequest<Tx>): Promise<unknown> {
  const { position, known } = nextStep(run, 'phase', name)
  if (known !== undefined) return fromJson(known.value)
  return whileRunning(run, name, () => commitPhase(run, { parts, position, name, work }))
}

/** A definition that was declared without phases calls one all the same: the row waits, with what was recorded, for a person to correct it. */
export function refusePhase<Tx>(run: StepRun<Tx>, called: 'phase' | 'outbox'): never {
  const { core, operation, claim } = run
  const message = `${operation} is declared with steps: 'effects', and its definition calls ${called}. Remove the call, or leave steps out on a store with transactions; then unpark the row`
  core.telemetry.report(message, { operation, identity: claim.id })
  return halt(run, { kind: 'park', cause: `${called}-not-declared` })
}

interface Phase<Tx> extends PhaseRequest<Tx> {
  readonly position: number
}

async function commitPhase<Tx>(run: StepRun<Tx>, phase: Phase<Tx>): Promise<unknown> {
  const { parts, position, name } = phase
  for (let tries = 0; tries < triesMax; tries++) {
    const inside: Inside = { lost: false, result: undefined }
    const end = await boundedTransaction(run.core, parts.transactor, (tx, edges) =>
      inTransaction(run, { ...phase, inside, tx, edges }),
    )
    faultPoint('phase:after-commit')
    const done = await conclude(run, { parts, position, end, inside })
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
  const { claim, leaseMs } = run
  const { position, name, inside, tx, edges } = phase
  const { phases } = phase.parts
  inside.lost = (await edges.first(() => phases.enterPhase(tx, claim))) === 'claim-lost'
  if (inside.lost) return 'rollback'
  inside.result = boundedJson(`${run.operation}: the value of the phase ${name}`, await phase.work(tx))
  // The claim is checked in the transaction itself: a run that was replaced while it worked rolls its writes back.
  const done = { position, name, value: inside.result }
  const written = await edges.last(() => phases.recordPhase(tx, claim, done, leaseMs))
  inside.lost = written === 'claim-lost'
  faultPoint('phase:before-commit')
  return inside.lost ? 'rollback' : 'commit'
}

interface PhaseResult<Tx> {
  readonly parts: PhaseParts<Tx>
  readonly position: number
  readonly end: BoundedEnd
  readonly inside: Inside
}

async function conclude<Tx>(run: StepRun<Tx>, result: PhaseResult<Tx>): Promise<'done' | 'again'> {
  const { end, inside } = result
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
      return afterLostCommit(run, result)
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
async function afterLostCommit<Tx>(run: StepRun<Tx>, { parts, position }: PhaseResult<Tx>): Promise<'done' | 'again'> {
  const { core, steps, claim } = run
  try {
    const read = () => parts.transactor.readAfterCommit(claim.id, commitWaitMs)
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
