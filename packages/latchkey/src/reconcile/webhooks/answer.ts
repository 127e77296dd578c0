/** What a sender of webhooks is answered: senders read the status, people the rest. */

/** `replayed`: the same delivery again, not a later one of the same message. */
export type RefusedWhy = 'forged' | 'stale' | 'malformed' | 'replayed' | 'too-large'

/** Long enough for a store to come back, short enough for senders that retry within the minute. */
const retryAfterSeconds = 10

const details: { readonly [Why in Exclude<RefusedWhy, 'too-large'>]: string } = {
  forged: 'No signature of this message fits.',
  stale: 'This message was signed too long ago, or in the future.',
  malformed: 'This message is not a signed webhook.',
  replayed: 'This very delivery was received before.',
}

export function received(): Response {
  return Response.json({ received: true }, { headers: { 'cache-control': 'no-store' } })
}

export function refused(why: Exclude<RefusedWhy, 'too-large'>): Response {
  return problem({ code: 'webhook-refused', status: 400, title: 'Webhook refused', detail: details[why], reason: why })
}

export function tooLarge(): Response {
  const detail = 'A webhook may have 1 MiB.'
  return problem({ code: 'webhook-too-large', status: 413, title: 'Webhook too large', detail })
}

export function notPost(): Response {
  const detail = 'Webhooks are sent with POST.'
  return problem({ code: 'webhook-method', status: 405, title: 'Method not allowed', detail }, { allow: 'POST' })
}

export function storeDown(): Response {
  const detail = 'The server cannot write this message down. Send it again later.'
  const retry = { 'retry-after': String(retryAfterSeconds) }
  return problem({ code: 'store-unavailable', status: 503, title: 'Store unavailable', detail }, retry)
}

export function failed(): Response {
  const detail = 'The server failed to understand this message. Send it again later.'
  return problem({ code: 'webhook-failed', status: 500, title: 'Webhook failed', detail })
}

interface Problem {
  readonly code: string
  readonly status: number
  readonly title: string
  readonly detail: string
  readonly reason?: string
}

function problem({ code, ...told }: Problem, headers: Record<string, string> = {}): Response {
  return new Response(JSON.stringify({ type: `urn:latchkey:problem:${code}`, ...told }), {
    status: told.status,
    headers: { 'content-type': 'application/problem+json', 'cache-control': 'no-store', ...headers },
  })
}
