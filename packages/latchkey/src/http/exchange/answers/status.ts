/** The status resource: how far work is, and at the end its outcome. To everybody but its own caller it is not there. */
import { isRowId } from '../../../engine/identity.ts'
import { engine } from '../../../engine/internal.ts'
import type { Status, Statuses } from '../../../engine/status.ts'
import { checkOptions, type ChecksOf } from '../../../ports/check-options.ts'
import { isLatchkeyError, misconfigured, unreachable } from '../../../ports/errors.ts'
import { callable } from '../../../ports/option-kinds.ts'
import type { Outcome } from '../../../ports/outcome.ts'
import type { KeyRecord } from '../../../ports/store.ts'
import { type Problem, type RenderedAnswer, renderProblem, renderStatus } from '../../../wire/problem.ts'
import { checkHttp } from '../route.ts'
import type { RequestView } from '../request.ts'
import { readableBody } from './readable-body.ts'

/** What `statusOf` needs of a Latchkey. */
export interface StatusHost<C> {
  readonly [engine]: { readonly statuses: Statuses<C> }
}

export interface StatusOptions<C> {
  /** Which operation is asked for. Default: the last part of the path that has the shape of an id. */
  readonly id?: (context: C) => string | undefined
}

export type Asked<C> = Pick<RequestView<C>, 'context' | 'path'>

const statusChecks: ChecksOf<StatusOptions<unknown>> = { id: callable }

export function checkStatus<C>(host: StatusHost<C>, options: StatusOptions<C>): void {
  if (typeof host?.[engine]?.statuses.read !== 'function')
    throw misconfigured('statusOf needs what createLatchkey gave you')
  checkHttp(host[engine].statuses.shared.http)
  checkOptions('statusOf', options, statusChecks)
}

export async function exchangeStatus<C>(
  host: StatusHost<C>,
  { context, path }: Asked<C>,
  options: StatusOptions<C>,
): Promise<RenderedAnswer> {
  const { statuses } = host[engine]
  const { http, telemetry } = statuses.shared
  const status = await statuses.read((options.id?.(context) ?? idIn(path)).toLowerCase(), context)
  if (status.kind === 'unavailable') telemetry.report('a status could not be read', { error: status.cause })
  if (status.kind === 'unreadable') telemetry.report('answered row-unreadable', { detail: status.why })
  return status.kind === 'found' ? renderFound(status) : renderProblem(problemOf(status), http)
}

/** Empty where there is none: that is no operation, like every other wrong id. */
function idIn(path: string): string {
  return path.toLowerCase().split('/').findLast(isRowId) ?? ''
}

function problemOf(status: Exclude<Status, { kind: 'found' }>): Problem {
  switch (status.kind) {
    case 'absent':
      return { code: 'no-such-operation' }
    case 'gone':
      return { code: 'key-expired' }
    case 'scope-unresolved':
      return { code: 'scope-unresolved' }
    case 'unreadable':
      return { code: 'row-unreadable', retryAfterMs: rarelyMs }
    case 'unavailable':
      if (isLatchkeyError(status.cause, 'overloaded')) return { code: 'overloaded', retryAfterMs: soonMs }
      return { code: 'store-unavailable', retryAfterMs: soonMs, about: 'status' }
    default:
      return unreachable(status)
  }
}

function renderFound({ record, step, outcome }: Extract<Status, { kind: 'found' }>): RenderedAnswer {
  const { id, operation, state, attempts, parked, createdAtMs } = record
  const content = {
    id,
    operation,
    state,
    step: step ?? null,
    attempts,
    parked,
    created_at: new Date(createdAtMs).toISOString(),
    ...(outcome === undefined ? {} : { outcome: shown(outcome) }),
  }
  return renderStatus(content, state === 'completed' ? undefined : retryAfterMs(record))
}

function shown(outcome: Outcome): object {
  const headers: Record<string, string> = {}
  for (const [name, value] of outcome.headers) {
    const lower = name.toLowerCase()
    // Lines of one field are one list (RFC 9110, section 5.3).
    headers[lower] = headers[lower] === undefined ? value : `${headers[lower]}, ${value}`
  }
  return { status: outcome.status, headers, ...readableBody(outcome) }
}

const soonMs = 1_000
const rarelyMs = 30_000

/** What waits for evidence or for a person is not hurried by asking. */
function retryAfterMs({ state, parked, dueInMs }: KeyRecord): number {
  if (parked || state === 'unknown') return rarelyMs
  return Math.min(Math.max(soonMs, dueInMs), rarelyMs)
}
