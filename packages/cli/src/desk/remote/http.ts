/** Requests to an admin API: JSON, a token, and one key for each act, so that a repetition is the same act. */
import { tokenOf } from '../../config/secrets.ts'
import type { Context } from '../../program/context.ts'
import { CliError, exits, usage } from '../../program/exit.ts'
import { pause } from '../../program/pause.ts'

export interface ApiRequest {
  readonly path: string
  readonly query?: Readonly<Record<string, string | number | undefined>>
  /** With a body it is a POST. */
  readonly body?: object
  /** The version of the row that the act relies on. */
  readonly version?: string
  /** A POST that changes nothing needs no key. */
  readonly isRead?: boolean
  /** Sent although the call was interrupted: to say what was done, and to cancel the rest. */
  readonly evenInterrupted?: boolean
}

export interface ApiAnswer {
  readonly status: number
  readonly body: unknown
}

export type Api = (request: ApiRequest) => Promise<ApiAnswer>

/** An act whose answer was lost is asked for again under the same key. */
const triesMax = 3
const retryMs = 500

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
    return send(request.evenInterrupted === true ? uninterrupted(context) : context, urlOf(base, request), init)
  }
}

async function send(context: Context, url: URL, init: RequestInit): Promise<ApiAnswer> {
  for (let tries = 1; tries < triesMax; tries += 1) {
    const answer = await sendOnce(context, url, init).catch(unlessRefused)
    if (answer !== undefined && !isUnderWay(answer)) return answer
    await pause(retryMs, context.signal)
  }
  return sendOnce(context, url, init)
}

function unlessRefused(error: unknown): undefined {
  if (error instanceof CliError && error.code !== 'unreachable') throw error
}

/** The first try of the same act has not ended yet. */
function isUnderWay({ body }: ApiAnswer): boolean {
  return typeof body === 'object' && body !== null && 'code' in body && body.code === 'in-progress'
}

async function sendOnce({ timeoutMs, signal }: Context, url: URL, init: RequestInit): Promise<ApiAnswer> {
  const limit = AbortSignal.any([AbortSignal.timeout(timeoutMs), signal])
  try {
    const response = await fetch(url, { ...init, signal: limit, redirect: 'error' })
    return { status: response.status, body: bodyOf(response, await response.text()) }
  } catch (error) {
    if (error instanceof CliError) throw error
    if (signal.aborted) throw new CliError(exits.interrupted, 'interrupted', 'interrupted while the server was asked')
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
    throw new CliError(exits.unreachable, 'unreachable', `${url.origin} cannot be reached: ${String(cause)}`)
  }
}

function uninterrupted(context: Context): Context {
  return { ...context, signal: new AbortController().signal }
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
