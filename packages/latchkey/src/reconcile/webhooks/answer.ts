/** The responses to a webhook. Senders read the status; the body is for people. */

/** `replayed`: the same delivery again, not a later delivery of the same message. */
export type RefusedWhy = 'forged' | 'stale' | 'malformed' | 'replayed' | 'too-large'

/** Long enough for a store to come back, short enough for senders that retry within the minute. */
const retryAfterSeconds = 10

const details: { readonly [Why in Exclude<RefusedWhy, 'too-large'>]: string } = {
  forged: 'No signature of this message is valid.',
  stale: 'This message was signed too long ago, or in the future.',
  malformed: 'This message is not a signed webhook.',
  replayed: 'This delivery was received before.',
}

export function received(): Response {
  return Response.json({ received: true }, { headers: { 'cache-control': 'no-store' } })
}

export function refused(why: Exclude<RefusedWhy, 'too-large'>): Response {
  return problem({ code: 'webhook-refused', status: 400, title: 'Webhook refused', detail: details[why], reason: why })
}

export function tooLarge(): Response {
  const detail = 'Webhook bodies are limited to 1 MiB.'
  return problem({ code: 'webhook-too-large', status: 413, title: 'Webhook too large', detail })
}

export function notPost(): Response {
  const detail = 'Webhooks are sent with POST.'
  return problem({ code: 'webhook-method', status: 405, title: 'Method not allowed', detail }, { allow: 'POST' })
}

export function storeDown(): Response {
  const detail = 'The server cannot store this message. Send it again later.'
  const retry = { 'retry-after': String(retryAfterSeconds) }
  return problem({ code: 'store-unavailable', status: 503, title: 'Store unavailable', detail }, retry)
}

export function failed(): Response {
  const detail = 'The server failed while processing this message. Send it again later.'
  return problem({ code: 'webhook-failed', status: 500, title: 'Webhook failed', detail })
}

interface WebhookProblem {
  readonly code: string
  readonly status: number
  readonly title: string
  readonly detail: string
  readonly reason?: string
}

function problem({ code, ...members }: WebhookProblem, headers: Record<string, string> = {}): Response {
  return new Response(JSON.stringify({ type: `urn:latchkey:problem:${code}`, ...members }), {
    status: members.status,
    headers: { 'content-type': 'application/problem+json', 'cache-control': 'no-store', ...headers },
  })
}
