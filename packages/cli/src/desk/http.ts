/** Requests to an admin API: JSON, a token, and one key for each act, so that a repetition is the same act. */
import { tokenOf } from '../config/secrets.ts'
import type { Context } from '../program/context.ts'
import { CliError, exits, usage } from '../program/exit.ts'

export interface ApiRequest {
  readonly path: string
  readonly query?: Readonly<Record<string, string | number | undefined>>
  /** With a body it is a POST. */
  readonly body?: object
  /** The version of the row that the act relies on. */
  readonly version?: string
  /** A POST that changes nothing needs no key. */
  readonly isRead?: boolean
}

export interface ApiAnswer {
  readonly status: number
  readonly body: unknown
}

export type Api = (request: ApiRequest) => Promise<ApiAnswer>

/** An act whose answer was lost is asked for again under the same key. */
const triesMax = 3

export function apiOf(context: Context, server: string): Api {
  const base = baseOf(server)
  const token = tokenOf(context.settings, context.env)
  if (token === undefined) throw usage('--server needs a token: set LATCHKEY_TOKEN, or give --token-file')
  return async request => {
    const { body, version, isRead = false } = request
    const headers: Record<string, string> = {
      accept: 'application/json, application/problem+json',
      authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(body === undefined || isRead ? {} : { 'idempotency-key': `"${context.clock.randomId()}"` }),
      ...(version === undefined ? {} : { 'if-match': `"${version}"` }),
    }
    const init = {
      method: body === undefined ? 'GET' : 'POST',
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    }
    return send(context, urlOf(base, request), init)
  }
}

async function send(context: Context, url: URL, init: RequestInit, tries = 1): Promise<ApiAnswer> {
  try {
    const signal = AbortSignal.any([AbortSignal.timeout(context.timeoutMs), context.signal])
    const response = await fetch(url, { ...init, signal, redirect: 'error' })
    const text = await response.text()
    return { status: response.status, body: bodyOf(response, text) }
  } catch (error) {
    if (context.signal.aborted)
      throw new CliError(exits.interrupted, 'interrupted', 'interrupted while the server was asked')
    if (error instanceof CliError) throw error
    if (tries < triesMax) return send(context, url, init, tries + 1)
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
    throw new CliError(exits.unreachable, 'unreachable', `${url.origin} cannot be reached: ${String(cause)}`)
  }
}

/** A proxy that answers with a page is not the API. */
function bodyOf({ status, headers }: Response, text: string): unknown {
  const type = headers.get('content-type') ?? ''
  if (/^application\/(?:[a-z.]+\+)?json\b/.test(type)) return JSON.parse(text)
  throw new CliError(
    exits.unreachable,
    'unreachable',
    `the server answered ${status} with ${type === '' ? 'no content type' : type}: --server must be the address that adminRoutes is mounted at`,
  )
}

function urlOf(base: URL, { path, query = {} }: ApiRequest): URL {
  const url = new URL(path, base)
  for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, String(value))
  return url
}

/** Where the routes are mounted, with or without a slash at its end. */
function baseOf(server: string): URL {
  if (!URL.canParse(server))
    throw usage(`--server must be an address such as https://ops.example.com/latchkey (got ${server})`)
  const url = new URL(server)
  if (url.username !== '' || url.password !== '')
    throw usage('--server must not have a password: the token is in LATCHKEY_TOKEN or --token-file')
  if (!url.pathname.endsWith('/')) url.pathname += '/'
  return new URL('api/v1/', url)
}
