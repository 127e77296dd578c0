/** The status resource: the progress of work, and at the end its outcome. Only its own caller can see it; others get 404. */
import { isRowId } from '../../../engine/request.ts'
import { engine } from '../../../engine/internal.ts'
import type { Status, Statuses } from '../../../engine/status.ts'
import { checkOptions, type ChecksOf } from '../../../ports/check-options.ts'
import { isLatchkeyError, misconfigured, unreachable } from '../../../ports/errors.ts'
import { callable } from '../../../ports/option-kinds.ts'
import type { Outcome } from '../../../ports/outcome.ts'
import type { KeyRecord } from '../../../ports/store.ts'
import type { Problem } from '../../../wire/problem.ts'
import { type RenderedAnswer, renderStatus } from '../../../wire/rendered-answer.ts'
import { checkHttp } from '../route.ts'
import type { RequestView } from '../request.ts'
import { answerProblem } from './problem.ts'

/** What `statusOf` needs of a Latchkey. */
export interface StatusHost<C> {
  readonly [engine]: { readonly statuses: Statuses<C> }
}

export interface StatusOptions<C> {
  /** The id of the operation. Default: the last part of the path that has the form of an id. */
  readonly id?: (context: C) => string | undefined
}

export type StatusRequest<C> = Pick<RequestView<C>, 'context' | 'path'>

const statusChecks: ChecksOf<StatusOptions<unknown>> = { id: callable }

export function checkStatus<C>(host: StatusHost<C>, options: StatusOptions<C>): void {
  if (typeof host?.[engine]?.statuses.read !== 'function')
    throw misconfigured('statusOf needs a Latchkey: statusOf(latchkey)')
  checkHttp(host[engine].statuses.shared.http)
  checkOptions('statusOf', options, statusChecks)
}

export async function exchangeStatus<C>(
  host: StatusHost<C>,
  { context, path }: StatusRequest<C>,
  options: StatusOptions<C>,
): Promise<RenderedAnswer> {
  const { statuses } = host[engine]
  const { telemetry } = statuses.shared
  const status = await statuses.read((options.id?.(context) ?? idIn(path)).toLowerCase(), context)
  if (status.kind === 'unavailable') telemetry.report('a status could not be read', { error: status.cause })
  if (status.kind === 'unreadable') telemetry.report('answered row-unreadable', { detail: status.why })
  return status.kind === 'found' ? renderFound(status) : answerProblem(problemOf(status), statuses.shared, context)
}

/** Empty where there is none: like every wrong id, that names no operation. */
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
    case 'limited':
      return { code: 'limit-exceeded', retryAfterMs: status.retryAfterMs }
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

/** The body of an outcome inside a JSON document. */
export type ReadableBody =
  /** JSON as its value, text as a string, an empty body as null. */
  | { readonly body: unknown }
  | { readonly body: string; readonly encoding: 'base64' }
  /** It exceeded the limit for stored bodies. */
  | { readonly body: null; readonly encoding: 'not-stored' }

export function readableBody({ headers, body }: Pick<Outcome, 'headers' | 'body'>): ReadableBody {
  if (body === undefined) return { body: null, encoding: 'not-stored' }
  if (body.byteLength === 0) return { body: null }
  const valueOf = (lower: string) => headers.find(([name]) => name.toLowerCase() === lower)?.[1]
  const coded = valueOf('content-encoding') !== undefined
  const text = coded ? undefined : textOf(valueOf('content-type') ?? '', body)
  return text ?? { body: Buffer.from(body).toString('base64'), encoding: 'base64' }
}

/** Undefined where the bytes do not match their type: then they are sent in base64. */
function textOf(contentType: string, body: Uint8Array): { body: unknown } | undefined {
  const [essence = '', ...parameters] = contentType.toLowerCase().split(';')
  const type = essence.trim()
  const isJson = type === 'application/json' || type.endsWith('+json')
  if (!isJson && !type.startsWith('text/')) return undefined
  const charset = parameters.map(one => /^ *charset *= *"?([^"]+)"?/.exec(one)?.[1]?.trim()).find(Boolean)
  try {
    const text = new TextDecoder(isJson ? 'utf-8' : (charset ?? 'utf-8'), { fatal: true }).decode(body)
    return { body: isJson ? JSON.parse(text) : text }
  } catch {
    return undefined
  }
}

const soonMs = 1_000
const rarelyMs = 30_000

/** Asking more often does not help where evidence or an operator is needed. */
function retryAfterMs({ state, parked, dueInMs }: KeyRecord): number {
  if (parked || state === 'unknown') return rarelyMs
  return Math.min(Math.max(soonMs, dueInMs), rarelyMs)
}
