/** Stores deferred work: the row and its input in one commit. A worker runs it later as phased work. */
import { wasNeverSent } from '../../ports/errors.ts'
import type { Header, Outcome } from '../../ports/outcome.ts'
import type { WorkInput } from '../../ports/steps.ts'
import type { EnqueueRequest, EnqueueResult, KeyRecord } from '../../ports/store.ts'
import { renderProblem, type RenderOptions } from '../../wire/render-problem.ts'
import { type Answer, type ExecuteRequest, inProgress, unavailable } from '../answer.ts'
import { type Settings, tombstoneOf } from '../options.ts'
import type { Core } from '../runtime.ts'
import { answerFromRow } from './answer-from-row.ts'
import { failed, notSent, type Unavailable } from './claim.ts'
import { inSpan } from './trace.ts'

/** As for claims: a row that changes hands faster than it can be read is contended. */
const looksMax = 5

export interface DeferredWork {
  readonly request: ExecuteRequest
  readonly work: WorkInput & { readonly deadlineInMs: number }
}

export async function enqueueOnce<Tx, C>(
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
      // Even work that begins at the deadline and is held for the maximum leaves its outcome there for a whole retention.
      expiresInMs: work.deadlineInMs + settings.holdMsMax + settings.retentionMs,
      tombstoneMs: tombstoneOf(settings),
    })
    if (queued.kind === 'unavailable') return unavailable(queued.cause, queued.inDoubt)
    if (queued.kind === 'queued') {
      request.onGrant?.('none')
      core.telemetry.count('reserve.created', {
        operation: identity.operation,
        identity: identity.id,
        detail: 'queued',
      })
      return { kind: 'accepted', id: identity.id }
    }
    const found = await answerDeferred(core, settings, { record: queued.record, request })
    if (found.kind !== 'look-again') return found
    request = found.request
  }
  return inProgress()
}

async function enqueue<Tx>(core: Core<Tx>, request: EnqueueRequest): Promise<EnqueueResult | Unavailable> {
  if (!core.calls.circuit.admits()) return notSent('the store failed repeatedly')
  try {
    const { telemetry, store } = core
    const run = () => store.enqueue(request)
    const { identity } = request
    return await core.calls.call('enqueue', () =>
      telemetry.trace === undefined ? run() : inSpan(telemetry, { span: 'claim', identity, run }),
    )
  } catch (cause) {
    if (wasNeverSent(cause)) return failed(cause)
    // The row shows whether it was written. If it is written later, a worker runs it, and the retry of the client that got 503 finds it.
    const record = await core.calls.call('read', () => core.store.read(request.identity.id)).catch(() => undefined)
    return record?.claimId === request.claimId ? { kind: 'queued' } : failed(cause)
  }
}

type DeferredAnswer = Answer | { readonly kind: 'look-again'; readonly request: ExecuteRequest }

/** The same 202 in every state before the end; the status resource shows which. */
async function answerDeferred<Tx, C>(
  core: Core<Tx>,
  settings: Settings<C>,
  { record, request }: { record: KeyRecord; request: ExecuteRequest },
): Promise<DeferredAnswer> {
  const found = await answerFromRow(core, settings, { record, request })
  if (found.kind === 'claim-again') {
    const compareAgain = found.request !== request
    return compareAgain || isOver(record)
      ? { kind: 'look-again', request: found.request }
      : { kind: 'accepted', id: record.id }
  }
  const { answer } = found
  const waits = answer.kind === 'refused' && waiting.has(answer.refusal.code)
  return waits ? { kind: 'accepted', id: record.id } : answer
}

const waiting: ReadonlySet<string> = new Set(['in-progress', 'outcome-unknown', 'parked'])

/** Expired, or its outcome was removed between two reads: the next try queues it anew. */
function isOver({ expired, state }: KeyRecord): boolean {
  return expired || state === 'completed'
}

/**
 * The outcome of work that no worker began before its deadline: the wire's `deadline-passed`. Stored like any outcome, so that every retry gets
 * the same bytes.
 */
export function deadlineOutcome(http: RenderOptions): Outcome {
  const { status, headers, body } = renderProblem({ code: 'deadline-passed' }, http)
  // Only the headers that describe the body: the others are made anew for every answer.
  const described = headers.map(([name, value]): Header => [name.toLowerCase(), value])
  return { status, headers: described.filter(([name]) => name.startsWith('content-')), body, version: 0 }
}
