/** Deferred: the row and its input in one commit, then a worker runs it as phased work. */
import { wasNeverSent } from '../../ports/errors.ts'
import type { Outcome } from '../../ports/outcome.ts'
import type { WorkInput } from '../../ports/steps.ts'
import type { EnqueueRequest, EnqueueResult, KeyRecord } from '../../ports/store.ts'
import { type Answer, type ExecuteRequest, refused, unavailable } from '../answer.ts'
import { failed, notSent, type Unavailable } from '../run/claim.ts'
import type { Core } from '../runtime.ts'
import type { HttpOptions } from '../operation.ts'
import { answerSeen } from '../run/answer-from-row.ts'
import { type Settings, tombstoneOf } from '../options.ts'

/** As for claims: a row that changes hands faster than we can look is contended. */
const looksMax = 5

export interface DeferredWork {
  readonly request: ExecuteRequest
  readonly work: WorkInput & { readonly deadlineInMs: number }
}

export async function executeDeferred<Tx, C>(
  core: Core<Tx>,
  settings: Settings<C>,
  { request, work }: DeferredWork,
): Promise<Answer> {
  for (let look = 0; look < looksMax; look++) {
    const { identity, fingerprint, description } = request
    const queued = await enqueue(core, {
      identity,
      claimId: core.clock.randomId(),
      fingerprint,
      description,
      work,
      // Begun at the last moment and held for as long as work may be, its outcome is still there for a whole retention.
      expiresInMs: work.deadlineInMs + settings.holdMsMax + settings.retentionMs,
      tombstoneMs: tombstoneOf(settings),
    })
    if (queued.kind === 'unavailable') return unavailable(queued.cause, queued.inDoubt)
    if (queued.kind === 'queued') {
      core.telemetry.count('reserve.created', {
        operation: identity.operation,
        identity: identity.id,
        detail: 'queued',
      })
      return { kind: 'accepted', id: identity.id }
    }
    const seen = await answerDeferred(core, settings, { record: queued.record, request })
    if (seen.kind !== 'look-again') return seen
    request = seen.request
  }
  return refused('in-progress', { retryAfterMs: 1_000 })
}

type Enqueued = EnqueueResult | Unavailable

async function enqueue<Tx>(core: Core<Tx>, request: EnqueueRequest): Promise<Enqueued> {
  if (!core.calls.circuit.admits()) return notSent('the store failed repeatedly')
  try {
    return await core.calls.call('enqueue', () => core.store.enqueue(request))
  } catch (cause) {
    if (wasNeverSent(cause)) return failed(cause)
    // Written or not, the row says. If it is written later, a worker runs it, and the retry of the client who heard 503 finds it.
    const record = await core.calls.call('read', () => core.store.read(request.identity.id)).catch(() => undefined)
    return record?.claimId === request.claimId ? { kind: 'queued' } : failed(cause)
  }
}

type Told = Answer | { readonly kind: 'look-again'; readonly request: ExecuteRequest }

/** The same 202 in every state before the end: which one it is, the status tells. */
async function answerDeferred<Tx, C>(
  core: Core<Tx>,
  settings: Settings<C>,
  { record, request }: { record: KeyRecord; request: ExecuteRequest },
): Promise<Told> {
  const seen = await answerSeen(core, settings, { record, request })
  if (seen.kind === 'claim-again') {
    const compareAgain = seen.request !== request
    return compareAgain || isOver(record)
      ? { kind: 'look-again', request: seen.request }
      : { kind: 'accepted', id: record.id }
  }
  const { answer } = seen
  const waits = answer.kind === 'refused' && waiting.has(answer.refusal.code)
  return waits ? { kind: 'accepted', id: record.id } : answer
}

const waiting: ReadonlySet<string> = new Set(['in-progress', 'outcome-unknown', 'parked'])

/** Expired, or its answer was taken between two looks: the next one queues it anew. */
function isOver({ expired, state }: KeyRecord): boolean {
  return expired || state === 'completed'
}

/**
 * What work that was not begun in time ends with. In the words of the wire's `deadline-passed`, which the engine cannot reach; kept
 * like any outcome, so that it is written once and stays what it was.
 */
export function deadlineOutcome({ profile, problemBase }: HttpOptions): Outcome {
  const code = 'deadline-passed'
  const status = 408
  const detail =
    'The work was not begun before its deadline. Nothing of it was done, and nothing will be. Use a new key.'
  const stripe = profile === 'stripe'
  const content = stripe
    ? { error: { type: 'api_error', code: 'deadline_passed', message: detail } }
    : { type: typeOf(code, problemBase), title: 'Deadline passed', status, detail }
  return {
    status,
    headers: [
      ['content-type', stripe ? 'application/json' : 'application/problem+json'],
      ['content-language', 'en'],
    ],
    body: Buffer.from(JSON.stringify(content)),
    version: 0,
  }
}

function typeOf(code: string, base: string | undefined): string {
  if (base === undefined) return `urn:latchkey:problem:${code}`
  return /[/#=]$/.test(base) ? base + code : `${base}/${code}`
}
