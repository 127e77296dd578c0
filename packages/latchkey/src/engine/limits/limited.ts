/**
 * Limits around one look at a row. Only the grant of a new key is debited: whoever has a row is answered from it, also when its scope has no
 * new keys left, so that a flood never punishes a retry.
 */
import type { GrantedFrom } from '../../ports/store.ts'
import { type Answer, type ExecuteRequest, refused, unavailable } from '../answer.ts'
import type { Once } from '../run/admit.ts'
import type { Core } from '../runtime.ts'
import type { Gates, LimitKind } from './gates.ts'

export function limited<Tx, W>(core: Core<Tx>, gates: Gates | undefined, once: Once<W>): Once<W> {
  if (gates === undefined) return once
  return async (request, work) => {
    const { scope } = request.identity
    const waitMs = gates['new-keys'].take(scope)
    if (waitMs !== undefined) return onlyFromRow(core, gates, { request, waitMs, run: () => once(request, work) })
    let isNew = false
    const onGrant = (from: GrantedFrom) => void (isNew ||= from === 'none' || from === 'expired')
    let answer: Answer
    try {
      answer = await once({ ...request, onGrant }, work)
    } finally {
      if (!isNew) gates['new-keys'].giveBack(scope)
    }
    return isNew || !isAboutRow(answer) ? answer : afterLook(core, gates, { request, answer })
  }
}

interface LimitedRequest {
  readonly request: ExecuteRequest
  readonly waitMs: number
  readonly run: () => Promise<Answer>
}

/** The scope has no new keys left. */
async function onlyFromRow<Tx>(
  core: Core<Tx>,
  gates: Gates,
  { request, waitMs, run }: LimitedRequest,
): Promise<Answer> {
  const { id } = request.identity
  const lookWaitMs = lookWait(gates, request)
  if (lookWaitMs !== undefined) return exceeded(core, request, 'lookups', lookWaitMs)
  const read = await core.calls.call('read', () => core.store.read(id)).catch((cause: unknown) => ({ cause }))
  if (read !== undefined && 'cause' in read) return unavailable(read.cause)
  if (read === undefined || read.expired) return exceeded(core, request, 'new-keys', waitMs)
  return afterMismatch(core, gates, { request, answer: await run() })
}

interface Answered {
  readonly request: ExecuteRequest
  readonly answer: Answer
}

/** The row was there, and nothing of it ran for this caller. */
function afterLook<Tx>(core: Core<Tx>, gates: Gates, answered: Answered): Answer {
  const { request } = answered
  const waitMs = lookWait(gates, request)
  return waitMs === undefined ? afterMismatch(core, gates, answered) : exceeded(core, request, 'lookups', waitMs)
}

/** Once for a caller, however often it looks again while it waits. */
function lookWait(gates: Gates, { identity, asksAgain }: ExecuteRequest): number | undefined {
  return asksAgain === true ? undefined : gates.lookups.take(identity.scope)
}

function afterMismatch<Tx>(core: Core<Tx>, gates: Gates, { request, answer }: Answered): Answer {
  if (answer.kind !== 'refused' || answer.refusal.code !== 'key-reused') return answer
  const waitMs = gates.mismatches.take(request.identity.scope)
  return waitMs === undefined ? answer : exceeded(core, request, 'mismatches', waitMs)
}

/** What a refused look tells of the row. A store that is down tells nothing, and what ran is the caller's own answer. */
function isAboutRow(answer: Answer): boolean {
  if (answer.kind !== 'refused') return answer.kind !== 'executed'
  const { code } = answer.refusal
  return code !== 'store-unavailable' && code !== 'overloaded' && code !== 'input-too-large'
}

export function exceeded<Tx>(
  { telemetry }: Core<Tx>,
  { identity: { operation, scope } }: Pick<ExecuteRequest, 'identity'>,
  kind: LimitKind,
  retryAfterMs: number,
): Answer {
  telemetry.count('limit.refused', { operation, scope, detail: kind })
  return refused('limit-exceeded', { retryAfterMs: Math.ceil(retryAfterMs) })
}
