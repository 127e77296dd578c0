/** Writing a handler's end to its row, and what to say when that fails. */
import { sleep } from '../ports/clock.ts'
import type { Claim, OwnerResult } from '../ports/store.ts'
import { type Answer, type Attempt, type ExecuteRequest, refused } from './answer.ts'
import type { Core } from './core.ts'
import type { Judgement } from './judge.ts'
import { answerSeen } from './seen.ts'
import type { Settings } from './settings.ts'

export interface Owned<C> {
  readonly claim: Claim
  /** What the lease surely has left. */
  readonly leftMs: () => number
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
  if (written === 'failed') core.telemetry.count('outcome.store_failed', { operation, identity: id })
  if (judgement.kind === 'unknown')
    return refused('outcome-unknown', { ownAttempt: true, retryAfterMs: 1_000, cause: errorOf(attempt) })
  if (written === 'failed') return { kind: 'executed', attempt, stored: 'failed' }
  return { kind: 'executed', attempt, stored: judgement.kind === 'keep' ? 'yes' : 'declined' }
}

/**
 * A store that fails here is retried while the lease lasts: the work is done, and the row must not be left to its recovery
 * for a hiccup. Never released: that would let a retry run it again.
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
  return calls.call('finish', () => write(core, owned, judgement), Math.min(calls.timeoutMs, limitMs))
}

function write<Tx, C>({ store }: Core<Tx>, { claim, settings }: Owned<C>, judgement: Judgement): Promise<OwnerResult> {
  if (judgement.kind === 'keep') return store.complete(claim, judgement.outcome, settings.retentionMs)
  const to = judgement.kind === 'unknown' ? 'unknown' : 'failed_retryable'
  const dueInMs = judgement.kind === 'retryable' ? (judgement.dueInMs ?? 0) : 0
  return store.fail(claim, { to, errorCode: judgement.errorCode, dueInMs })
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
