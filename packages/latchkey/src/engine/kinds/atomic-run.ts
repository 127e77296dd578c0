/** Atomic work inside its transaction: reserves the key, runs the handler and records its answer. */
import { unreachable } from '../../ports/errors.ts'
import type { AtomicRequest, GrantedFrom, KeyRecord, TakeOver, Transactor } from '../../ports/store.ts'
import type { Answer, Attempt, ExecuteRequest, Work } from '../answer.ts'
import { type AtomicExecution, attemptOf, execution, neverLost, type Observed, saidNotExecuted } from '../execution.ts'
import { type Settings, tombstoneOf } from '../options.ts'
import { type Judgement, judge } from '../rules/judge.ts'
import { gatheredReferences } from '../run/references.ts'
import { countGrant } from '../run/claim.ts'
import { inSpan, workInSpan } from '../run/trace.ts'
import type { Core } from '../runtime.ts'
import { type Edges, unbounded } from '../store/transaction.ts'

export interface AtomicRun<Tx> {
  readonly transactor: Transactor<Tx>
  readonly request: ExecuteRequest
  readonly work: Work<AtomicExecution<Tx>>
  readonly takeOver?: TakeOver | undefined
}

/** How one transaction of ours ended. `ran`: the handler was called in it. */
export type Ended =
  | EndedRun
  | { readonly kind: 'seen'; readonly record: KeyRecord }
  | { readonly kind: 'busy' }
  | { readonly kind: 'taken' }

export interface EndedRun {
  readonly kind: 'ran'
  readonly attempt: Attempt
  readonly judgement: Judgement
  /** Why its answer could not be recorded in the transaction. */
  readonly spoilt?: 'aborted' | 'ended'
}

export interface Inside {
  ended?: Ended
  /** What the row was reserved from. */
  from?: GrantedFrom
}

interface InTransaction<Tx> extends AtomicRun<Tx> {
  readonly row: AtomicRequest
  readonly tx: Tx
  readonly edges: Edges
  /** Set as soon as the handler has ended: what follows may fail, and its end counts all the same. */
  readonly inside: Inside
}

export async function reserveAndRun<Tx, C>(
  core: Core<Tx>,
  settings: Settings<C>,
  run: InTransaction<Tx>,
): Promise<Ended> {
  const { transactor, edges, tx, row } = run
  const { telemetry } = core
  const { identity } = row
  const isTraced = telemetry.trace !== undefined
  const reserve = () => transactor.reserve(tx, row)
  const reservation = await edges.first(
    isTraced ? () => inSpan(telemetry, { span: 'claim', identity, run: reserve }) : reserve,
  )
  if (reservation.kind !== 'free') return reservation
  const { operation } = identity
  run.inside.from = reservation.from
  run.request.onGrant?.(reservation.from)
  const references: string[] = []
  const context = atomicExecution(core, run, { fence: reservation.fence + 1, references })
  const startedAtMs = core.clock.monotonicMs()
  const attempt = await attemptOf(run.request, workInSpan(telemetry, run.request, run.work), context)
  const tookMs = core.clock.monotonicMs() - startedAtMs
  core.durations.add(operation, tookMs)
  telemetry.observe('execution.duration', tookMs, { operation })
  const { storeStatus, outcomeBytesMax, outcomeVersion, neverStored, sensitive } = settings
  const rules = { onFailure: 'rerun', storeStatus, outcomeBytesMax, outcomeVersion, neverStored, sensitive } as const
  const judgement = judge(attempt, rules, context[saidNotExecuted])
  const ended: EndedRun = { kind: 'ran', attempt, judgement }
  run.inside.ended = ended
  if (judgement.kind !== 'keep' || !commits(ended)) return ended
  const { outcome } = judgement
  // The caller of a transaction that was handed in may send more in it; ours ends here.
  const isLast = edges !== unbounded && references.length === 0
  const record = async () => {
    if (isLast && transactor.recordLast !== undefined) return transactor.recordLast(tx, row, outcome, reservation.fence)
    const written = await transactor.record(tx, row, outcome, reservation.fence)
    if (written === 'recorded' && references.length > 0) await addReferences(core, run, references)
    return written
  }
  const recorded = await edges.last(
    isTraced ? () => inSpan(telemetry, { span: 'complete', identity, run: record }) : record,
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

/** A throw rolls its business rows back, also when it was rendered as an answer that is stored. */
export function commits({ attempt, judgement }: { attempt: Attempt; judgement: Judgement }): boolean {
  return judgement.kind === 'keep' && (attempt.kind === 'unreplayable' || attempt.error === undefined)
}

export function isUnknown(ended: Ended | undefined): boolean {
  return ended?.kind === 'ran' && ended.judgement.kind === 'unknown'
}

/** After the row: what an earlier use of its key left goes when it is recorded. */
async function addReferences<Tx>(
  core: Core<Tx>,
  { tx, row }: InTransaction<Tx>,
  texts: readonly string[],
): Promise<void> {
  const references = texts.map(index => ({ index, sealed: undefined }))
  await core.store.references?.addIn(tx, row.identity.id, references)
}

interface Reserved {
  readonly fence: number
  /** Where the handler's references are gathered. */
  readonly references: string[]
}

function atomicExecution<Tx>(
  core: Core<Tx>,
  { request, tx }: InTransaction<Tx>,
  { fence, references }: Reserved,
): AtomicExecution<Tx> & Observed {
  const writer = gatheredReferences(core, request.identity, references)
  // Onto the object itself: a copy would read its signal.
  return Object.assign(execution(request, { attempt: fence, fence, lease: neverLost, references: writer }), { tx })
}

export function atomicRequest<Tx, C>(core: Core<Tx>, settings: Settings<C>, run: AtomicRun<Tx>): AtomicRequest {
  const { identity, fingerprint, description } = run.request
  const { retentionMs } = settings
  const claimId = core.clock.randomId()
  const { takeOver } = run
  return { identity, fingerprint, description, claimId, retentionMs, tombstoneMs: tombstoneOf(settings), takeOver }
}

interface StoredRow {
  readonly row: AtomicRequest
  readonly from: GrantedFrom | undefined
  readonly answer: Answer
}

/** Once for a key: a transaction that was rolled back has created nothing. */
export function countStored<Tx>(core: Core<Tx>, { row, from, answer }: StoredRow): void {
  if (answer.kind !== 'executed' || answer.stored !== 'yes') return
  if (from !== undefined) countGrant(core, from, row.identity)
}
