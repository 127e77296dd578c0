/** One request of a client, and what its answer means. */
import type { ClientEvent, Kind } from '../history.ts'

export interface Ask {
  readonly kind: Kind
  readonly key: string
  readonly account: string
  readonly amount: number
  readonly poison?: boolean
  /** Waits for a process that is paused. */
  readonly patient?: boolean
}

/**
 * `final`: done. `later`: retry. `held`: it is unknown, and retrying does not help now. `parked`: retrying never helps.
 * `statusPath`: it was accepted, and this is its status resource.
 */
export interface Heard {
  readonly verdict: 'final' | 'later' | 'held' | 'parked'
  readonly afterMs: number
  readonly event: Told
  readonly statusPath?: string
}
type Told = Omit<ClientEvent, 'key' | 'kind' | 'account'>

/** A client gives up before a lease ends, so that its retry meets the first attempt. */
const patienceMs = 2_000
/** Beyond the longest pause of a process: this client hears what an owner says that was replaced meanwhile. */
const patientMs = 20_000

export async function ask(url: string, { kind, account, patient, ...body }: Ask): Promise<Heard> {
  const limitMs = patient === true ? patientMs : patienceMs
  return hear({ judged: judge, limitMs }, `${url}/${kind}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': body.key, 'x-account': account },
    body: JSON.stringify({ ...body, account }),
  })
}

/** Polls the status resource of an accepted request. */
export async function look(url: string, account: string): Promise<Heard> {
  return hear({ judged: judgeStatus, limitMs: patienceMs }, url, { headers: { 'x-account': account } })
}

interface Hearing {
  readonly judged: (response: Response, body: string) => Heard
  readonly limitMs: number
}

async function hear({ judged, limitMs }: Hearing, url: string, request: RequestInit): Promise<Heard> {
  try {
    const response = await fetch(url, { ...request, signal: AbortSignal.timeout(limitMs) })
    return judged(response, await response.text())
  } catch (error) {
    // Refused, cut off in the middle, or no answer in time: it may have happened.
    return { verdict: 'later', afterMs: 0, event: { type: 'info', error: nameOf(error) } }
  }
}

function judge(response: Response, body: string): Heard {
  const { status, headers } = response
  const code = codeOf(headers, body)
  const afterMs = afterMsOf(headers)
  const heard = { status, body, ...(code === undefined ? {} : { code }) }
  if (status === 202) {
    const statusPath = headers.get('location') ?? ''
    return { verdict: 'later', afterMs, event: { type: 'info', ...heard }, statusPath }
  }
  if (code === 'parked') return { verdict: code, afterMs, event: { type: 'info', ...heard } }
  if (code === 'outcome-unknown')
    return { verdict: status === 504 ? 'later' : 'held', afterMs, event: { type: 'info', ...heard } }
  if (headers.get('latchkey-retry') === 'no') return { verdict: 'final', afterMs, event: { type: 'fail', ...heard } }
  if (headers.has('latchkey-retry') || status >= 500)
    return { verdict: 'later', afterMs, event: { type: 'info', ...heard } }
  const replayed = headers.get('idempotent-replayed') === 'true'
  const unstored = headers.get('idempotency-stored') === 'false'
  return { verdict: 'final', afterMs, event: { type: 'ok', ...heard, replayed, ...(unstored ? { unstored } : {}) } }
}

interface Status {
  readonly state: string
  readonly parked: boolean
  readonly outcome?: { readonly status: number; readonly body: unknown }
}

function judgeStatus({ status, headers }: Response, body: string): Heard {
  const afterMs = afterMsOf(headers)
  if (status !== 200) return { verdict: 'later', afterMs, event: { type: 'info', looked: true, status, body } }
  const { state, parked, outcome }: Status = JSON.parse(body)
  if (outcome !== undefined) {
    const told = { status: outcome.status, body: JSON.stringify(outcome.body) }
    return { verdict: 'final', afterMs, event: { type: 'ok', looked: true, ...told } }
  }
  const verdict = state === 'unknown' ? 'held' : 'later'
  return { verdict: parked ? 'parked' : verdict, afterMs, event: { type: 'info', looked: true, status, code: state } }
}

function afterMsOf(headers: Headers): number {
  return Number(headers.get('retry-after') ?? 0) * 1_000
}

function codeOf(headers: Headers, body: string): string | undefined {
  if (!headers.get('content-type')?.startsWith('application/problem+json')) return undefined
  const { type } = JSON.parse(body) as { type?: string }
  return type?.replace('urn:latchkey:problem:', '')
}

function nameOf(error: unknown): string {
  const cause = error instanceof Error ? (error.cause ?? error) : error
  if (typeof cause !== 'object' || cause === null) return String(cause)
  return String(Reflect.get(cause, 'code') ?? Reflect.get(cause, 'name'))
}
