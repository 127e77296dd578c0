/** Claims until the row is ours or has given its answer: what guarded and phased work begin with. */
import type { Recovery, TakeOver } from '../../ports/store.ts'
import type { WorkInput } from '../../ports/steps.ts'
import { type Answer, type ExecuteRequest, refused } from '../answer.ts'
import { claim, type Claimed, type Unavailable } from './claim.ts'
import type { Core } from '../runtime.ts'
import { answerSeen, grantOf } from './answer-from-row.ts'
import { type Settings, tombstoneOf } from '../options.ts'

/** A row that changes hands faster than we can look is contended, not free: after this many looks the caller hears 409. */
const looksMax = 5

export type Won = Extract<Claimed, { kind: 'won' }>

export interface Granted {
  readonly won: Won
  /** With the fingerprint that the row was granted under. */
  readonly request: ExecuteRequest
  /** Monotonic time from before the claim was sent. */
  readonly claimedAtMs: number
}

export interface Claiming {
  readonly request: ExecuteRequest
  readonly recovery: Recovery
  readonly work?: WorkInput | undefined
  /** How much longer than others the row is kept, should it come to no end. Default 0. */
  readonly keptLongerMs?: number
  readonly run: (granted: Granted) => Promise<Answer>
  readonly storeDown: (down: Unavailable) => Promise<Answer>
}

export async function claimThenRun<Tx, C>(core: Core<Tx>, settings: Settings<C>, claiming: Claiming): Promise<Answer> {
  let { request } = claiming
  // Whoever may be told nothing of a row may not get it either: first only what is nobody's, then the row that was allowed.
  let takeOver: TakeOver | undefined = request.authorizeReplay && 'none'
  for (let look = 0; look < looksMax; look++) {
    const claimedAtMs = core.clock.monotonicMs()
    const claimed = await claim(core, {
      identity: request.identity,
      claimId: core.clock.randomId(),
      fingerprint: request.fingerprint,
      recovery: claiming.recovery,
      leaseMs: settings.leaseMs,
      expiresInMs: settings.holdMsMax + settings.retentionMs + (claiming.keptLongerMs ?? 0),
      description: request.description,
      tombstoneMs: tombstoneOf(settings),
      work: claiming.work,
      takeOver,
    })
    switch (claimed.kind) {
      case 'unavailable':
        return claiming.storeDown(claimed)
      case 'won':
        countGrant(core, claimed, request)
        return await claiming.run({ won: claimed, request, claimedAtMs })
      case 'seen': {
        const seen = await answerSeen(core, settings, { record: claimed.record, request })
        if (seen.kind === 'answer') return seen.answer
        request = seen.request
        takeOver &&= grantOf(claimed.record)
      }
    }
  }
  return refused('in-progress', { retryAfterMs: 1_000 })
}

function countGrant<Tx>(core: Core<Tx>, { from }: Won, { identity }: ExecuteRequest): void {
  const attributes = { operation: identity.operation, identity: identity.id }
  // One key is created once: who takes it over or tries it again is counted as that.
  if (from === 'none' || from === 'expired') core.telemetry.count('reserve.created', attributes)
  if (from === 'expired') core.telemetry.count('reserve.after_expiry', attributes)
  if (from === 'failed_retryable') core.telemetry.count('reserve.failed_retry', attributes)
  if (from === 'dead-lease') core.telemetry.count('takeover', attributes)
}
