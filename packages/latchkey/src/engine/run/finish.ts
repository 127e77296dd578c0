/** Writing a handler's end to its row, and what to say when that fails. */
import { sleep } from '../../ports/clock.ts'
import type { Claim, OwnerResult } from '../../ports/store.ts'
import { type Answer, type Attempt, type ExecuteRequest, refused } from '../answer.ts'
import type { Core } from '../runtime.ts'
import { holdLease, type Lease } from './lease.ts'
import type { Judgement } from '../rules/judge.ts'
import { answerSeen } from './answer-from-row.ts'
import type { Settings } from '../options.ts'

export interface Owned<C> {
  readonly claim: Claim
  /** What the lease surely has left. */
  readonly leftMs: () => number
  /** Absent: each step's commit renews it. */
  readonly lease: Lease | undefined
  readonly request: ExecuteRequest
  readonly settings: Settings<C>
}

/** The client is waiting with its answer ready: longer than this it is better sent unstored. */
const storeRetryMsMax = 5_000
const firstPauseMs = 50

export async function finishAs<Tx, C>(
  core: Core<Tx>,
  owned: Owned<C>,
  { attempt, judgement }: { attempt: Attempt; judgement: Judgement },
): Promise<Answer> {
  const written = await writeUntilStored(core, owned, judgement)
  const { operation, id } = owned.request.identity
  if (written === 'claim-lost') return answerAfterLoss(core, owned)
  if (written === 'failed') {
    core.telemetry.count('outcome.store_failed', { operation, identity: id })
    keepForLater(core, owned, judgement)
  }
  if (judgement.kind === 'unknown')
    return refused('outcome-unknown', { ownAttempt: true, retryAfterMs: 1_000, cause: errorOf(attempt) })
  if (written === 'failed') return { kind: 'executed', attempt, stored: 'failed' }
  return { kind: 'executed', attempt, stored: judgement.kind === 'keep' ? 'yes' : 'declined' }
}

/**
 * A store that fails here is retried while the lease lasts and the client can wait; afterwards in the background. Never released: that
 * would let a retry run it again.
 */
function writeUntilStored<Tx, C>(
  core: Core<Tx>,
  owned: Owned<C>,
  judgement: Judgement,
): Promise<OwnerResult | 'failed'> {
  const startedAtMs = core.clock.monotonicMs()
  return writeOnce(core, owned, { judgement, limitMs: storeRetryMsMax }).catch(() =>
    writeAgain(core, owned, { judgement, startedAtMs }),
  )
}

async function writeAgain<Tx, C>(
  core: Core<Tx>,
  owned: Owned<C>,
  { judgement, startedAtMs }: { judgement: Judgement; startedAtMs: number },
): Promise<OwnerResult | 'failed'> {
  const spent = () => core.clock.monotonicMs() - startedAtMs
  for (let pauseMs = firstPauseMs; ; pauseMs *= 2) {
    if (spent() + pauseMs > storeRetryMsMax || owned.leftMs() < pauseMs) return 'failed'
    await sleep(core.clock, pauseMs)
    try {
      return await writeOnce(core, owned, { judgement, limitMs: storeRetryMsMax - spent() })
    } catch {
      // Whether there is time for another is looked at above.
    }
  }
}

function writeOnce<Tx, C>(
  core: Core<Tx>,
  owned: Owned<C>,
  { judgement, limitMs }: { judgement: Judgement; limitMs: number },
): Promise<OwnerResult | 'failed'> {
  const { calls } = core
  return calls.call('finish', () => finishRow(core, owned, judgement), Math.min(calls.timeoutMs, limitMs))
}

function finishRow<Tx, C>(
  { store }: Core<Tx>,
  { claim, settings }: Owned<C>,
  judgement: Judgement,
): Promise<OwnerResult> {
  if (judgement.kind === 'keep') return store.complete(claim, judgement.outcome, settings.retentionMs)
  const to = judgement.kind === 'unknown' ? 'unknown' : 'failed_retryable'
  const dueInMs = judgement.kind === 'retryable' ? (judgement.dueInMs ?? 0) : 0
  return store.fail(claim, { to, errorCode: judgement.errorCode, dueInMs })
}

/** A handler's outcome has its name and a few headers besides; this is for them and for the entry itself. */
const entryBytes = 1_024

/**
 * The client has its answer, and the store does not. Where there is no room for the body the rest is kept: that it happened, and how it
 * ended, is worth more than the bytes.
 */
function keepForLater<Tx, C>(core: Core<Tx>, owned: Owned<C>, judgement: Judgement): void {
  const { claim, settings, request } = owned
  const { operation } = request.identity
  const { leaseMs, holdMsMax } = settings
  const fits = bytesOf(judgement) <= core.unstored.bytesLeft()
  const kept = fits ? judgement : withoutBody(judgement)
  const claimedAtMs = core.clock.monotonicMs()
  const lease = owned.lease ?? holdLease(core, { claim, leaseMs, holdMsMax, claimedAtMs, operation })
  const write = () => finishRow(core, owned, kept)
  const isKept = core.unstored.keep({ claim, operation, lease, holdMsMax, write, bytes: bytesOf(kept) })
  if (!isKept && owned.lease === undefined) lease.end()
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

/** Somebody else owns the row now: our own success is never sent; the winner's answer is, if there is one yet. */
export async function answerAfterLoss<Tx, C>(
  core: Core<Tx>,
  { request, settings }: Pick<Owned<C>, 'request' | 'settings'>,
): Promise<Answer> {
  const { operation, id } = request.identity
  core.telemetry.count('claim_lost', { operation, identity: id })
  const record = await core.calls.call('read', () => core.store.read(id)).catch(() => undefined)
  if (record === undefined || record.expired) return refused('in-progress', { retryAfterMs: 1_000 })
  const seen = await answerSeen(core, settings, { record, request }).catch(() => undefined)
  return seen?.kind === 'answer' ? seen.answer : refused('in-progress', { retryAfterMs: 1_000 })
}

function errorOf(attempt: Attempt): unknown {
  return attempt.kind === 'unreplayable' ? undefined : attempt.error
}
