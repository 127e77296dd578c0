/** One call of the admin API. What went wrong is a value: every screen shows it, and none of them throws. */

/** Below the page's own address, so that any mount works. */
const apiBase = new URL('api/v1/', document.baseURI)

/** A request that no answer has come to after this long is given up. Lists of the API have 2 s. */
const answerWithinMs = 15_000

/** RFC 9457, with the members that the API adds to it. */
export interface Problem {
  readonly status: number
  readonly code: string
  readonly title: string
  readonly detail: string | undefined
  readonly members: Readonly<Record<string, unknown>>
}

export type Answer<T> =
  | { readonly kind: 'ok'; readonly status: number; readonly value: T; readonly etag: string | undefined }
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'problem'; readonly problem: Problem }

export interface Query {
  readonly [name: string]: string | number | undefined
}

export function pathWith(path: string, query: Query): string {
  const given = Object.entries(query).flatMap(([name, value]) =>
    value === undefined || value === '' ? [] : [[name, String(value)]],
  )
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given)}`
}

export function apiAddress(path: string): string {
  return new URL(path, apiBase).href
}

export function read<T>(path: string, { etag, signal }: { etag?: string | undefined; signal?: AbortSignal } = {}) {
  const headers: Record<string, string> = etag === undefined ? {} : { 'if-none-match': etag }
  return send<T>(path, { headers, ...(signal === undefined ? {} : { signal }) })
}

export interface Write {
  /** The same for a repetition of the same act, which is then done once. */
  readonly requestId: string
  /** The version of the row that the person has seen. */
  readonly version?: string | undefined
  readonly body: unknown
}

export function write<T>(path: string, { requestId, version, body }: Write): Promise<Answer<T>> {
  return send<T>(path, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'idempotency-key': `"${requestId}"`,
      ...(version === undefined ? {} : { 'if-match': `"${version}"` }),
    },
    body: JSON.stringify(body),
  })
}

/** A read whose question must not stand in an address. */
export function ask<T>(path: string, body: unknown): Promise<Answer<T>> {
  return send<T>(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
}

async function send<T>(path: string, init: RequestInit): Promise<Answer<T>> {
  const limit = AbortSignal.timeout(answerWithinMs)
  const signal = init.signal ? AbortSignal.any([init.signal, limit]) : limit
  try {
    const response = await fetch(apiAddress(path), { ...init, signal, cache: 'no-store', credentials: 'same-origin' })
    if (response.status === 304) return { kind: 'unchanged' }
    if (!response.ok) return { kind: 'problem', problem: await problemOf(response) }
    // The API is built with the same types; a page of another release reads unknown fields as absent.
    const value = (await response.json()) as T
    return { kind: 'ok', status: response.status, value, etag: response.headers.get('etag') ?? undefined }
  } catch {
    return { kind: 'problem', problem: unreachable(limit.aborted, init.method === 'POST') }
  }
}

async function problemOf(response: Response): Promise<Problem> {
  const members: Record<string, unknown> = await response.json().catch(() => ({}))
  const { code, title, detail } = members
  return {
    status: response.status,
    code: typeof code === 'string' ? code : `http-${response.status}`,
    title: typeof title === 'string' ? title : `The server answered with status ${response.status}`,
    detail: typeof detail === 'string' ? detail : undefined,
    members,
  }
}

function unreachable(isLate: boolean, isAct: boolean): Problem {
  const title = isLate ? `No answer within ${answerWithinMs / 1000} s` : 'The server cannot be reached'
  return {
    status: 0,
    code: 'unreachable',
    title,
    detail: isAct
      ? `${title}: nothing is known about what it did. Send it again: the same act is done once.`
      : `${title}: what you see is from before. The page keeps asking.`,
    members: {},
  }
}

/** Not crypto.randomUUID, which browsers withhold from pages without TLS. */
export function newRequestId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return Array.from(bytes, byte => byte.toString(16).padStart(2, '0')).join('')
}
