/** Writes the end of a handler to its row, and answers when that fails. */
import type { Claim, OwnerResult } from '../../ports/store.ts'
import { faultPoint } from '../../ports/telemetry.ts'
import {
  type Answer,
  type Attempt,
  errorOf,
  type ExecuteRequest,
  inProgress,
  outcomeUnknown,
  type StoredAs,
} from '../answer.ts'
import type { Settings } from '../options.ts'
import type { Judgement } from '../rules/judge.ts'
import type { Core } from '../runtime.ts'
import { type Caller, retryUntilStored, storedWithinMs } from '../store/call.ts'
import { answerFromRow } from './answer-from-row.ts'
import { holdLease, type Lease } from './lease.ts'
import { inSpan } from './trace.ts'

export interface OwnedRow<C> {
  readonly claim: Claim
  /** At least this much of the lease is left. */
  readonly lasts: Pick<Lease, 'leftMs'>
  /** Absent: each step's commit renews it. */
  readonly lease: Lease | undefined
  readonly request: ExecuteRequest
  readonly settings: Settings<C>
}

export interface JudgedEnd {
  readonly attempt: Attempt
  readonly judgement: Judgement
}

/** Gets how the end was stored. */
export interface Ending {
  answer(answer: Answer): void
  threw(error: unknown): void
}

export function finishAs<Tx, C>(core: Core<Tx>, owned: OwnedRow<C>, end: JudgedEnd): Promise<Answer> {
  return new Promise((answer, threw) => new StoredEnd(core, owned, { end, ending: { answer, threw } }).write())
}

/**
 * A store that fails here is retried while the lease lasts and the client can wait; afterwards in the background. The claim is never
 * released: that would let a retry run the handler again.
 */
export class StoredEnd<Tx, C> implements Caller<OwnerResult> {
  private readonly core: Core<Tx>
  private readonly owned: OwnedRow<C>
  private readonly end: JudgedEnd
  private readonly ending: Ending
  private sinceMs = 0

  constructor(core: Core<Tx>, owned: OwnedRow<C>, { end, ending }: { end: JudgedEnd; ending: Ending }) {
    this.core = core
    this.owned = owned
    this.end = end
    this.ending = ending
  }

  write(): void {
    const { calls, clock } = this.core
    this.sinceMs = clock.monotonicMs()
    let asked: Promise<OwnerResult>
    try {
      faultPoint('finish', 'before')
      asked = finishRow(this.core, this.owned, this.end.judgement)
    } catch (error) {
      // A port that throws instead of rejecting.
      asked = Promise.reject(error)
    }
    calls.watch('finish', asked, this, Math.min(calls.timeoutMs, storedWithinMs))
  }

  answered(written: OwnerResult): void {
    const { core, owned, end, ending } = this
    if (written !== 'claim-lost') return ending.answer(answerOf(end, storedAs(end)))
    answerAfterLoss(core, owned).then(
      answer => ending.answer(answer),
      (error: unknown) => ending.threw(error),
    )
  }

  unanswered(cause: unknown): void {
    const { core, owned, end, sinceMs } = this
    const finish = () => finishRow(core, owned, end.judgement)
    const write = (limitMs: number) => core.calls.call('finish', finish, Math.min(core.calls.timeoutMs, limitMs))
    retryUntilStored(core.clock, { write, cause, sinceMs, claimLeftMs: () => owned.lasts.leftMs() })
      .then(
        written => this.answered(written),
        () => this.unstored(),
      )
      .catch((error: unknown) => this.threw(error))
  }

  threw(error: unknown): void {
    this.ending.threw(error)
  }

  private unstored(): void {
    const { core, owned, end, ending } = this
    const { operation, id } = owned.request.identity
    core.telemetry.count('outcome.store_failed', { operation, identity: id })
    storeLater(core, owned, end.judgement)
    ending.answer(answerOf(end, 'failed'))
  }
}

function answerOf({ attempt, judgement }: JudgedEnd, stored: StoredAs): Answer {
  return judgement.kind === 'unknown' ? outcomeUnknown(errorOf(attempt)) : { kind: 'executed', attempt, stored }
}

function storedAs({ judgement }: JudgedEnd): StoredAs {
  return judgement.kind === 'keep' ? 'yes' : 'not-stored'
}

function finishRow<Tx, C>(core: Core<Tx>, owned: OwnedRow<C>, judgement: Judgement): Promise<OwnerResult> {
  const { telemetry } = core
  if (telemetry.trace === undefined) return writeEnd(core, owned, judgement)
  const { identity } = owned.request
  return inSpan(telemetry, { span: 'complete', identity, run: () => writeEnd(core, owned, judgement) })
}

function writeEnd<Tx, C>(
  { store }: Core<Tx>,
  { claim, settings }: OwnedRow<C>,
  judgement: Judgement,
): Promise<OwnerResult> {
  if (judgement.kind === 'keep') return store.complete(claim, judgement.outcome, settings.retentionMs)
  const to = judgement.kind === 'unknown' ? 'unknown' : 'failed_retryable'
  const dueInMs = judgement.kind === 'retryable' ? (judgement.dueInMs ?? 0) : 0
  return store.fail(claim, { to, errorCode: judgement.errorCode, dueInMs })
}

/** For the operation's name, a few headers and the entry itself. */
const entryBytes = 1_024

/**
 * The client gets its answer although the store has not taken it. Where memory has no room for the body the rest is stored later: that it
 * happened, and how it ended, is worth more than the bytes.
 */
function storeLater<Tx, C>(core: Core<Tx>, owned: OwnedRow<C>, judgement: Judgement): void {
  const { claim, settings, request } = owned
  const { operation } = request.identity
  const { leaseMs, holdMsMax } = settings
  const fits = bytesOf(judgement) <= core.unstored.bytesLeft()
  const held = fits ? judgement : withoutBody(judgement)
  const claimedAtMs = core.clock.monotonicMs()
  const lease = owned.lease ?? holdLease(core, { claim, leaseMs, holdMsMax, claimedAtMs, operation })
  const write = () => finishRow(core, owned, held)
  const isHeld = core.unstored.keep({ claim, operation, lease, holdMsMax, write, bytes: bytesOf(held) })
  if (!isHeld && owned.lease === undefined) lease.end()
}

function bytesOf(judgement: Judgement): number {
  if (judgement.kind !== 'keep') return entryBytes
  const { headers, body } = judgement.outcome
  return headers.reduce((sum, [name, value]) => sum + name.length + value.length, entryBytes + (body?.byteLength ?? 0))
}

/** Replayed as "it happened, and its answer was not stored". */
function withoutBody(judgement: Judgement): Judgement {
  if (judgement.kind !== 'keep') return judgement
  return { ...judgement, outcome: { ...judgement.outcome, body: undefined } }
}

/** Another owner has the row now: our own success is never sent; the winner's answer is, if there is one yet. */
export async function answerAfterLoss<Tx, C>(
  core: Core<Tx>,
  { request, settings }: Pick<OwnedRow<C>, 'request' | 'settings'>,
): Promise<Answer> {
  const { operation, id } = request.identity
  core.telemetry.count('claim_lost', { operation, identity: id })
  const record = await core.calls.call('read', () => core.store.read(id)).catch(() => undefined)
  if (record === undefined || record.expired) return inProgress()
  const found = await answerFromRow(core, settings, { record, request }).catch(() => undefined)
  return found?.kind === 'answer' ? found.answer : inProgress()
}
