/** The answer for a row that another claim owns or has finished. */
import { LatchkeyError, unreachable } from '../../ports/errors.ts'
import type { Outcome } from '../../ports/outcome.ts'
import type { KeyRecord, TakeOver } from '../../ports/store.ts'
import { type Answer, type ExecuteRequest, inProgress, refused, retryAfterMsMin, unavailable } from '../answer.ts'
import {
  differingParts,
  type FingerprintPart,
  fingerprintVersion,
  restateFingerprint,
  sameFingerprint,
} from '../fingerprint/fingerprint.ts'
import type { Core } from '../runtime.ts'
import { type Decision, decide } from '../rules/decide.ts'
import type { Settings } from '../options.ts'

/** `claim-again`: the row is free, or must be compared by another fingerprint; the caller claims once more with this request. */
export type RowAnswer =
  | { readonly kind: 'answer'; readonly answer: Answer }
  | { readonly kind: 'claim-again'; readonly request: ExecuteRequest }

/** An unknown row is settled by evidence, not by waiting: until its first look-up, a retry once in a while is enough. */
const unknownRetryAfterMs = 30_000

interface RowAndRequest {
  readonly record: KeyRecord
  readonly request: ExecuteRequest
}

export async function answerFromRow<Tx, C>(
  core: Core<Tx>,
  settings: Settings<C>,
  { record, request }: RowAndRequest,
): Promise<RowAnswer> {
  if (!(await maySee(core, request, record))) return answer(refused('replay-not-authorized'))
  const decision = decide(record, request.fingerprint)
  const before = decision.kind === 'misuse' ? asBeforeRotation(request, record) : undefined
  if (before !== undefined) return { kind: 'claim-again', request: before }
  switch (decision.kind) {
    case 'claim-again':
      return { kind: 'claim-again', request }
    case 'compare-by':
      return compareBy(request, record, decision.version)
    case 'sweep':
      return sweepThenClaim(core, record, request)
    case 'replay':
      core.telemetry.count('reserve.replay', { operation: record.operation, scope: record.scope })
      return answer({ kind: 'replayed', outcome: upgraded(core, settings, decision.outcome), record })
    case 'unknown':
      core.telemetry.count('reserve.unknown', { operation: record.operation })
      return answer(refused('outcome-unknown', { retryAfterMs: await untilNextLookUp(core, record) }))
    default:
      return answer(refuse(core, { record, request }, decision))
  }
}

/** Before that, only a webhook or a person can have settled it. */
async function untilNextLookUp<Tx>({ calls, store }: Core<Tx>, { id }: KeyRecord): Promise<number> {
  const { reconciliation } = store
  if (reconciliation === undefined) return unknownRetryAfterMs
  const inMs = await calls.call('read', () => reconciliation.nextLookUpInMs(id)).catch(() => undefined)
  return inMs === undefined ? unknownRetryAfterMs : Math.max(retryAfterMsMin, inMs)
}

async function sweepThenClaim<Tx>(
  core: Core<Tx>,
  { id, operation }: KeyRecord,
  request: ExecuteRequest,
): Promise<RowAnswer> {
  try {
    const swept = await core.calls.call('sweep', () => core.store.sweep({ limit: 1, id }))
    // Of several requests that find the dead lease, only the one whose sweep moved the row counts it.
    if (swept.length > 0) core.telemetry.count('zombie_key', { operation, identity: id })
    return { kind: 'claim-again', request }
  } catch (cause) {
    // There is a row: an earlier request with this key was accepted, and may have been executed.
    return answer(unavailable(cause, true))
  }
}

type RefusedDecision = Exclude<Decision, { kind: 'claim-again' | 'compare-by' | 'sweep' | 'replay' | 'unknown' }>

function refuse<Tx>(core: Core<Tx>, { record, request }: RowAndRequest, decision: RefusedDecision): Answer {
  const { operation, scope } = record
  switch (decision.kind) {
    case 'misuse':
      tellMisuse(core, record, decision.differs)
      return refused('key-reused', { differs: decision.differs })
    case 'running':
      countInProgress(core, request)
      return inProgress(core.durations.leftMs(operation, elapsedMs(record)))
    case 'not-due':
      countInProgress(core, request)
      return inProgress(Math.max(retryAfterMsMin, decision.dueInMs))
    case 'not-stored':
      core.telemetry.count('reserve.replay', { operation, scope })
      return refused('response-not-stored', { outcome: decision.outcome })
    case 'parked':
      return refused('parked')
    case 'gone':
      return refused('key-expired')
    case 'unreadable':
      return unreadable(core, record, decision.why)
    default:
      return unreachable(decision)
  }
}

/** A mistake in a client, reported so that it can be found: with its scope and row, never the key. */
function tellMisuse<Tx>(core: Core<Tx>, record: KeyRecord, differs: readonly FingerprintPart[]): void {
  const { id: identity, operation, scope } = record
  core.telemetry.count('reserve.key_misuse', { operation, identity, scope })
  const detail = differs.join(', ')
  core.telemetry.report(
    'a client used a key again for another request, which was refused: it needs a new key for each',
    {
      operation,
      identity,
      scope,
      detail,
    },
  )
}

/** Once for a caller, however often it polls while it waits. */
export function countInProgress<Tx>(
  core: Core<Tx>,
  { identity, asksAgain }: Pick<ExecuteRequest, 'identity' | 'asksAgain'>,
): void {
  if (asksAgain === true) return
  const { operation, scope } = identity
  core.telemetry.count('reserve.in_progress', { operation, scope })
}

/** The start of a later attempt is not stored: it may have only just begun. */
function elapsedMs({ attempts, ageMs }: KeyRecord): number {
  return attempts === 1 ? ageMs : 0
}

/** Only its own caller is affected, and the circuit is not: the store has answered. */
function unreadable<Tx>(core: Core<Tx>, { id, operation }: Pick<KeyRecord, 'id' | 'operation'>, why: string): Answer {
  const cause = new LatchkeyError('row-unreadable', `the row ${id} cannot be read: ${why}`)
  core.telemetry.report('a row cannot be read: inspect it, then roll forward or forget it', {
    operation,
    identity: id,
    error: cause,
  })
  return refused('row-unreadable', { cause, retryAfterMs: unknownRetryAfterMs })
}

function compareBy(request: ExecuteRequest, record: KeyRecord, version: number): RowAnswer {
  const fingerprint = restateFingerprint(request.fingerprint, record.fingerprint)
  if (fingerprint !== undefined) return { kind: 'claim-again', request: { ...request, fingerprint } }
  const cause = new LatchkeyError(
    'fingerprint-version',
    `the row was written with fingerprint version ${version}, unknown here`,
  )
  return answer(refused('fingerprint-version', { cause, retryAfterMs: unknownRetryAfterMs }))
}

/**
 * The request with its fingerprint under the HMAC key before the current one, if that is the row's. Also where the request is another one:
 * under the row's own key fewer parts differ, and the client gets those.
 */
function asBeforeRotation(request: ExecuteRequest, { fingerprint: stored }: KeyRecord): ExecuteRequest | undefined {
  const made = request.previousFingerprint?.()
  if (made === undefined) return undefined
  const fingerprint = fingerprintVersion(made) === fingerprintVersion(stored) ? made : restateFingerprint(made, stored)
  if (fingerprint === undefined) return undefined
  const isCloser = differingParts(fingerprint, stored).length < differingParts(request.fingerprint, stored).length
  if (!isCloser && !sameFingerprint(fingerprint, stored)) return undefined
  return { ...request, fingerprint, previousFingerprint: undefined }
}

/** The grant that the caller was allowed to see. It may take over this one, and no other. */
export function grantOf({ fence, claimId }: KeyRecord): TakeOver {
  return { fence, claimId }
}

async function maySee<Tx>(core: Core<Tx>, request: ExecuteRequest, record: KeyRecord): Promise<boolean> {
  if (request.authorizeReplay === undefined || record.expired) return true
  try {
    // From JavaScript it may return anything; only `true` allows.
    return (await request.authorizeReplay(record)) === true
  } catch (error) {
    core.telemetry.report('authorizeReplay threw, so the replay is refused', { operation: record.operation, error })
    return false
  }
}

export function upgraded<Tx, C>(core: Core<Tx>, { upgrade, outcomeVersion }: Settings<C>, outcome: Outcome): Outcome {
  if (upgrade === undefined || outcome.version >= outcomeVersion) return outcome
  try {
    return upgrade(outcome)
  } catch (error) {
    core.telemetry.report('upgrade threw, so the outcome is replayed as stored', { error })
    return outcome
  }
}

function answer(value: Answer): RowAnswer {
  return { kind: 'answer', answer: value }
}
