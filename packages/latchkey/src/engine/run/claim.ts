/**
 * Claims the row, and runs the work once it is granted: what guarded and phased work begin with. A claim whose reply was lost is found again
 * by its claimId, or remembered and released.
 */
import { isLatchkeyError, wasNeverSent } from '../../ports/errors.ts'
import type { WorkInput } from '../../ports/steps.ts'
import { faultPoint } from '../../ports/telemetry.ts'
import type { ClaimRequest, ClaimResult, GrantedFrom, Identity, KeyRecord, Recovery } from '../../ports/store.ts'
import { type Answer, type ExecuteRequest, inProgress } from '../answer.ts'
import { type Settings, tombstoneOf } from '../options.ts'
import type { Core } from '../runtime.ts'
import type { Caller } from '../store/call.ts'
import type { Once } from './admit.ts'
import { answerFromRow, grantOf } from './answer-from-row.ts'
import { inSpan } from './trace.ts'

/** A row that changes hands faster than it can be read is contended, not free: after this many tries the caller gets 409. */
const looksMax = 5

export type Won = Extract<ClaimResult, { kind: 'won' }>

/** An execution that waits for the answer to its claim, and then for its end. */
export interface Claiming<W> {
  /** With the fingerprint that the row was granted under. */
  readonly request: ExecuteRequest
  readonly work: W
  /** Monotonic time from before the claim was sent. */
  readonly claimedAtMs: number
  answer(answer: Answer): void
  threw(error: unknown): void
}

export interface Granted<W> extends Pick<Claiming<W>, 'request' | 'work' | 'claimedAtMs'> {
  readonly won: Won
}

/** How an operation claims its rows, and what it does with a grant. */
export interface ClaimPlan<W> {
  readonly recovery: Recovery
  /** How much longer than others a row is retained that never finishes. Default 0. */
  readonly extraRetentionMs?: number
  /** Phased: what a new row stores to be resumed with. */
  readonly inputOf?: (work: W) => WorkInput | undefined
  /** Answers the execution or fails it, once. */
  readonly run: (won: Won, execution: Claiming<W>) => void
  readonly storeDown: (down: Unavailable, request: ExecuteRequest, work: W) => Promise<Answer>
}

export function claimThenRun<Tx, C, W>(core: Core<Tx>, settings: Settings<C>, plan: ClaimPlan<W>): Once<W> {
  const expiresInMs = settings.holdMsMax + settings.retentionMs + (plan.extraRetentionMs ?? 0)
  const claims = { core, settings, plan, expiresInMs, tombstoneMs: tombstoneOf(settings) }
  return (request, work) => {
    const run = new ClaimedRun(claims, request, work)
    run.claim()
    return run.answering
  }
}

/** What all executions of an operation share. */
interface Claims<Tx, C, W> {
  readonly core: Core<Tx>
  readonly settings: Settings<C>
  readonly plan: ClaimPlan<W>
  readonly expiresInMs: number
  readonly tombstoneMs: number | undefined
}

/** One execution, from its claim to its answer. A class without promises between its steps, because every request has one. */
class ClaimedRun<Tx, C, W> implements Claiming<W>, Caller<ClaimResult> {
  request: ExecuteRequest
  readonly work: W
  claimedAtMs = 0
  readonly answering: Promise<Answer>
  answer: (answer: Answer) => void = unset
  threw: (error: unknown) => void = unset
  private readonly claims: Claims<Tx, C, W>
  private sent: SentClaim | undefined = undefined
  /** What the last claim met instead of a grant. */
  private seen: KeyRecord | undefined = undefined
  /** How often it met a row. */
  private looks = 0

  constructor(claims: Claims<Tx, C, W>, request: ExecuteRequest, work: W) {
    this.claims = claims
    this.request = request
    this.work = work
    this.answering = new Promise((answer, threw) => {
      this.answer = answer
      this.threw = threw
    })
  }

  claim(): void {
    const { core, plan } = this.claims
    this.claimedAtMs = core.clock.monotonicMs()
    const refused = whyNotSent(core, isReleased(plan.recovery))
    if (refused !== undefined) return this.goOn(plan.storeDown(refused, this.request, this.work))
    const claim = this.claimRequest()
    let asked: Promise<ClaimResult>
    try {
      faultPoint('claim', 'before')
      asked = core.telemetry.trace === undefined ? core.store.claim(claim) : claimInSpan(core, claim)
    } catch (error) {
      // A port that throws instead of rejecting.
      asked = Promise.reject(error)
    }
    this.sent = { claim, asked }
    core.calls.watch('claim', asked, this)
  }

  private claimRequest(): ClaimRequest {
    const { request, seen, work } = this
    const { core, plan, settings, expiresInMs, tombstoneMs } = this.claims
    return {
      identity: request.identity,
      claimId: core.clock.randomId(),
      fingerprint: request.fingerprint,
      recovery: plan.recovery,
      leaseMs: settings.leaseMs,
      expiresInMs,
      description: request.description,
      tombstoneMs,
      work: plan.inputOf?.(work),
      // A caller that may not see a row may not get it either: first it claims only a new row, then the one it was allowed to see.
      takeOver: request.authorizeReplay && (seen === undefined ? 'none' : grantOf(seen)),
    }
  }

  answered(claimed: ClaimResult): void {
    const { core, plan } = this.claims
    if (claimed.kind === 'won') {
      countGrant(core, claimed.from, this.request.identity)
      this.request.onGrant?.(claimed.from)
      return plan.run(claimed, this)
    }
    this.seen = claimed.record
    this.looks += 1
    return this.goOn(this.fromRow(claimed.record))
  }

  unanswered(cause: unknown): void {
    this.goOn(this.withoutReply(cause))
  }

  private async withoutReply(cause: unknown): Promise<Answer | undefined> {
    const { sent, request, work } = this
    const { core, plan } = this.claims
    const found =
      sent === undefined || wasNeverSent(cause) ? failed(cause) : await findLostClaim(core, sent.claim, cause)
    if (found.kind === 'won') {
      this.answered(found)
      return undefined
    }
    if (sent !== undefined && found.inDoubt && isReleased(plan.recovery))
      core.uncertain.remember(sent.claim, sent.asked)
    return plan.storeDown(found, request, work)
  }

  private async fromRow(record: KeyRecord): Promise<Answer | undefined> {
    const { core, settings } = this.claims
    const found = await answerFromRow(core, settings, { record, request: this.request })
    if (found.kind === 'answer') return found.answer
    if (this.looks >= looksMax) return inProgress()
    this.request = found.request
    this.claim()
    return undefined
  }

  /** Undefined: the execution has gone on. */
  private goOn(answering: Promise<Answer | undefined>): void {
    answering.then(answer => answer && this.answer(answer), this.threw)
  }
}

function claimInSpan<Tx>({ telemetry, store }: Core<Tx>, claim: ClaimRequest): Promise<ClaimResult> {
  return inSpan(telemetry, { span: 'claim', identity: claim.identity, run: () => store.claim(claim) })
}

export function countGrant<Tx>(core: Core<Tx>, from: GrantedFrom, identity: Identity): void {
  const attributes = { operation: identity.operation, identity: identity.id }
  // A key is created once. A grant that takes it over or tries it again is counted as that.
  if (from === 'none' || from === 'expired') core.telemetry.count('reserve.created', attributes)
  if (from === 'expired') core.telemetry.count('reserve.after_expiry', attributes)
  if (from === 'failed_retryable') core.telemetry.count('reserve.failed_retry', attributes)
  if (from === 'dead-lease') core.telemetry.count('takeover', attributes)
}

export interface Unavailable {
  readonly kind: 'unavailable'
  readonly cause: unknown
  /** The call was sent: the store may have carried it out, or may do so later. */
  readonly inDoubt: boolean
}

/** The call never reached the store. */
export function notSent(why: string): Unavailable {
  return { kind: 'unavailable', cause: new Error(why), inDoubt: false }
}

/** The call failed. A store that answered with its fault leaves no doubt; nor does a call that was never sent. */
export function failed(cause: unknown): Unavailable {
  const answered = isLatchkeyError(cause) && cause.code !== 'store-unavailable' && cause.code !== 'invariant'
  return { kind: 'unavailable', cause, inDoubt: !answered && !wasNeverSent(cause) }
}

/** Phased work is not released: that would race its workers, and the one that finds its dead lease resumes from its journal. */
function isReleased(recovery: Recovery): boolean {
  return recovery !== 'resume'
}

/** Undefined: the claim may be sent. `released`: should its reply be lost, it is remembered and released. */
function whyNotSent<Tx>({ uncertain, calls }: Core<Tx>, released: boolean): Unavailable | undefined {
  // First: a claim that may not be sent must not take the probe of an open circuit from the claims that are to be released.
  if (released && uncertain.isFull) return notSent('too many claims are uncertain')
  return calls.circuit.admits() ? undefined : notSent('the store failed repeatedly')
}

/** Claims a row to record what has happened already. If the reply is lost the row is not freed. */
export async function claimToRecord<Tx>(core: Core<Tx>, claim: ClaimRequest): Promise<ClaimResult | Unavailable> {
  const refused = whyNotSent(core, false)
  if (refused !== undefined) return refused
  return core.calls
    .call('claim', () => core.store.claim(claim))
    .catch((cause: unknown) => (wasNeverSent(cause) ? failed(cause) : findLostClaim(core, claim, cause)))
}

interface SentClaim {
  readonly claim: ClaimRequest
  /** The call, which the store may still answer. */
  readonly asked: Promise<ClaimResult>
}

async function findLostClaim<Tx>(
  core: Core<Tx>,
  { identity, claimId, leaseMs }: ClaimRequest,
  cause: unknown,
): Promise<Won | Unavailable> {
  const found = await core.calls.call('read', () => core.store.read(identity.id)).catch(() => undefined)
  const mine = found?.state === 'in_progress' && found.claimId === claimId
  // Half the lease must be left: with less the handler would start on a claim that is already running out.
  if (found === undefined || !mine || found.leaseLeftMs <= leaseMs / 2) return failed(cause)
  const claim = { id: found.id, fence: found.fence, claimId }
  return { kind: 'won', claim, attempt: found.attempts, crashes: found.crashes, from: 'none' }
}

/** Until the promise of the answer is there. */
function unset(): void {}
