/**
 * Limits around one look at a row. Only the grant of a new key is debited: a request with a row is answered from it, also when its scope has no
 * new keys left, so that a flood never punishes a retry.
 */
import type { GrantedFrom } from '../../ports/store.ts'
import { type Answer, type ExecuteRequest, refused, unavailable } from '../answer.ts'
import type { Once } from '../run/admit.ts'
import type { Core } from '../runtime.ts'
import type { Excess, Gates, Taken } from './gates.ts'
import { withFigures } from './with-figures.ts'

export function withLimits<Tx, W>(core: Core<Tx>, gates: Gates | undefined, given: Once<W>): Once<W> {
  if (gates === undefined) return given
  const once = withFigures(gates.figures, given)
  return async (request, work) => {
    const { scope } = request.identity
    const taken = gates['new-keys'].take(scope)
    const excess = taken instanceof Promise ? await taken : taken
    if (excess !== undefined) return onlyFromRow(core, gates, { request, excess, run: () => once(request, work) })
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
  readonly excess: Excess
  readonly run: () => Promise<Answer>
}

/** The scope has no new keys left. */
async function onlyFromRow<Tx>(
  core: Core<Tx>,
  gates: Gates,
  { request, excess, run }: LimitedRequest,
): Promise<Answer> {
  const { id } = request.identity
  const tooManyLooks = await takeLook(gates, request)
  if (tooManyLooks !== undefined) return exceeded(core, gates, { request, excess: tooManyLooks })
  const read = await core.calls.call('read', () => core.store.read(id)).catch((cause: unknown) => ({ cause }))
  if (read !== undefined && 'cause' in read) return unavailable(read.cause)
  if (read === undefined || read.expired) return exceeded(core, gates, { request, excess })
  return afterMismatch(core, gates, { request, answer: await run() })
}

interface Answered {
  readonly request: ExecuteRequest
  readonly answer: Answer
}

/** The row was there, and nothing of it ran for this caller. */
function afterLook<Tx>(core: Core<Tx>, gates: Gates, answered: Answered): Answer | Promise<Answer> {
  const { request } = answered
  return whenTaken(takeLook(gates, request), excess =>
    excess === undefined ? afterMismatch(core, gates, answered) : exceeded(core, gates, { request, excess }),
  )
}

/** Once for a caller, however often it looks again while it waits. */
function takeLook(gates: Gates, { identity, asksAgain }: ExecuteRequest): Taken {
  return asksAgain === true ? undefined : gates.lookups.take(identity.scope)
}

function afterMismatch<Tx>(core: Core<Tx>, gates: Gates, { request, answer }: Answered): Answer | Promise<Answer> {
  if (answer.kind !== 'refused' || answer.refusal.code !== 'key-reused') return answer
  return whenTaken(gates.mismatches.take(request.identity.scope), excess =>
    excess === undefined ? answer : exceeded(core, gates, { request, excess }),
  )
}

/** Without a promise of its own where the process itself counts. */
function whenTaken(
  taken: Taken,
  go: (excess: Excess | undefined) => Answer | Promise<Answer>,
): Answer | Promise<Answer> {
  return taken instanceof Promise ? taken.then(go) : go(taken)
}

/** What a refused look tells of the row. A store that is down tells nothing, and what ran is the caller's own answer. */
function isAboutRow(answer: Answer): boolean {
  if (answer.kind !== 'refused') return answer.kind !== 'executed'
  const { code } = answer.refusal
  return code !== 'store-unavailable' && code !== 'overloaded' && code !== 'input-too-large'
}

interface Refused {
  readonly request: Pick<ExecuteRequest, 'identity'>
  readonly excess: Excess
}

async function exceeded<Tx>(core: Core<Tx>, { pace }: Gates, { request, excess }: Refused): Promise<Answer> {
  const { operation, scope } = request.identity
  core.telemetry.count('limit.refused', { operation, scope, detail: excess.limit })
  await pace.wait(scope)
  return refused('limit-exceeded', { retryAfterMs: Math.ceil(excess.waitMs) })
}
