/** One operation of an innocent client, retried as the answers say until the answer is final. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Done, Route } from './app/operations.ts'

export interface Ask {
  readonly url: string
  readonly route: Route
  readonly account: string
  readonly key: string
}

export type Heard =
  | { readonly kind: 'done'; readonly done: Done; readonly requests: number }
  /** Refused, failed, or not answered. */
  | { readonly kind: 'lost'; readonly what: string; readonly requests: number }

/** Longer than any delay that is not a loss. */
const patienceMs = 30_000
/** Work in progress is requested again at most this often, at least a second apart. */
const asksMax = 60

export async function ask({ url, route, account, key }: Ask): Promise<Heard> {
  const headers = { 'content-type': 'application/json', 'idempotency-key': key, 'x-account': account }
  const post = { method: 'POST', headers, body: JSON.stringify({ key }) }
  let next: { readonly url: string; readonly init: RequestInit } = { url: `${url}/${route}`, init: post }
  for (let requests = 1; requests <= asksMax; requests += 1) {
    const answer = await send(next.url, next.init)
    if (answer.kind === 'lost') return { ...answer, what: `${route} ${answer.what}`, requests }
    if (answer.kind === 'done') return { ...answer, requests }
    if (answer.location !== undefined) next = { url: `${url}${answer.location}`, init: { headers } }
    await delay(answer.afterMs)
  }
  return { kind: 'lost', what: `${route} is still in progress after ${asksMax} requests`, requests: asksMax }
}

type Answer =
  | { readonly kind: 'done'; readonly done: Done }
  | { readonly kind: 'later'; readonly afterMs: number; readonly location: string | undefined }
  | { readonly kind: 'lost'; readonly what: string }

async function send(url: string, init: RequestInit): Promise<Answer> {
  try {
    const response = await fetch(url, { ...init, signal: AbortSignal.timeout(patienceMs) })
    return judge(response, await response.text())
  } catch (error) {
    return { kind: 'lost', what: `was not answered: ${nameOf(error)}` }
  }
}

function judge({ status, headers }: Response, text: string): Answer {
  const afterMs = Number(headers.get('retry-after') ?? 1) * 1_000
  // A duplicate, while the first request runs.
  if (status === 409 && text.includes('in-progress')) return { kind: 'later', afterMs, location: undefined }
  if (status === 202) return { kind: 'later', afterMs, location: headers.get('location') ?? undefined }
  // app.ts builds all its answers in one place.
  if (status === 201) return { kind: 'done', done: JSON.parse(text) as Done }
  if (status !== 200) return { kind: 'lost', what: `${status} ${text.slice(0, 120)}` }
  const { state, outcome }: { state: string; outcome?: { body: Done } } = JSON.parse(text)
  if (outcome !== undefined) return { kind: 'done', done: outcome.body }
  if (state === 'unknown') return { kind: 'lost', what: 'became unknown' }
  return { kind: 'later', afterMs, location: undefined }
}

function nameOf(error: unknown): string {
  const cause = error instanceof Error ? (error.cause ?? error) : error
  if (typeof cause !== 'object' || cause === null) return String(cause)
  return String(Reflect.get(cause, 'code') ?? Reflect.get(cause, 'name'))
}
