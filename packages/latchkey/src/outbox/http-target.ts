/** Delivers over HTTP: one POST for each message, with an idempotency key, signed if there is a secret. */
import type { DeliveryResult, Target } from '../ports/target.ts'
import { checkOptions, type ChecksOf } from '../ports/check-options.ts'
import { systemClock, type Clock } from '../ports/clock.ts'
import { misconfigured } from '../ports/errors.ts'
import { either, having, listOf, recordOf, secret, text, waitedMs } from '../ports/option-kinds.ts'
import type { Message } from '../ports/outbox.ts'
import { webhookKey, webhookSignature } from './webhook-signature.ts'

export interface HttpTargetOptions {
  /** Redirects are not followed: a signed message goes nowhere else. */
  readonly url: string | URL
  /**
   * Signs every request as Standard Webhooks does. `whsec_` and base64 of 24 to 64 bytes; several while one replaces
   * another. Default: not signed.
   */
  readonly secret?: string | readonly string[]
  /** Sent with every request, such as `authorization`; they override a message's own. Default: none. */
  readonly headers?: Readonly<Record<string, string>>
  /** How long one request may take, to the end of its response. Default 10,000: less than the relay allows a delivery. */
  readonly timeoutMs?: number
  /** Aborts all requests. Default: none. */
  readonly signal?: AbortSignal
  /** For `webhook-timestamp`. Default: the process's clock. */
  readonly clock?: Clock
}

/** Only an id is read from the response; a longer one is ignored. */
const answerBytesMax = 64 * 1024
const retryAfterMsMax = 3_600_000

const httpTargetChecks: ChecksOf<HttpTargetOptions> = {
  url: either(text, { wants: 'a URL', fits: value => value instanceof URL }),
  secret: secret(either(text, listOf(text))),
  // They may contain credentials.
  headers: secret(recordOf(text)),
  timeoutMs: waitedMs,
  signal: { wants: 'an AbortSignal', fits: value => value instanceof AbortSignal },
  clock: having('a clock', 'nowMs'),
}

export function httpTarget(options: HttpTargetOptions): Target {
  checkOptions('httpTarget', options, httpTargetChecks)
  const { secret: given = [], headers = {}, timeoutMs = 10_000, signal: closing, clock = systemClock } = options
  const url = checkedUrl(options.url)
  const keys = [given].flat().map(webhookKey)
  const own = new Headers(headers)

  return {
    // Without the path, which is secret in some systems.
    name: `POST ${url.origin}`,
    async deliver(message, { signal }) {
      if (!isFieldText(message.dedupId)) return { kind: 'refused', error: 'dedup-id-not-ascii' }
      const timestamp = Math.floor(clock.nowMs() / 1_000)
      const sent = requestHeaders(message, own)
      if (sent === undefined) return { kind: 'refused', error: 'invalid-header' }
      sent.set('webhook-timestamp', String(timestamp))
      if (keys.length > 0) {
        const signed = { id: message.dedupId, timestamp, body: message.payload }
        sent.set('webhook-signature', webhookSignature(keys, signed))
      }
      const signals = [signal, AbortSignal.timeout(timeoutMs), ...(closing ? [closing] : [])]
      const response = await fetch(url, {
        method: 'POST',
        redirect: 'manual',
        headers: sent,
        // A copy with its own buffer: a driver's buffer may be shared.
        body: Uint8Array.from(message.payload),
        signal: AbortSignal.any(signals),
      })
      return judge(response, clock)
    },
  }
}

function checkedUrl(asked: string | URL): URL {
  const text = String(asked)
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') {
    throw misconfigured(`httpTarget: url must begin with http:// or https:// (got ${text})`)
  }
  if (url.username === '' && url.password === '') return url
  throw misconfigured(
    'httpTarget: url must not contain a user name or password; send them in headers, as authorization',
  )
}

/** Undefined: the application wrote a header that HTTP cannot carry, so no retry will succeed. */
function requestHeaders(message: Message, own: Headers): Headers | undefined {
  let headers: Headers
  try {
    headers = new Headers(message.headers)
  } catch {
    return undefined
  }
  for (const name of ['host', 'content-length', 'transfer-encoding', 'connection', 'webhook-signature'])
    headers.delete(name)
  if (!headers.has('content-type')) headers.set('content-type', 'application/json')
  for (const [name, value] of own) headers.set(name, value)
  // A Structured Field String (RFC 9651, section 3.3.3).
  headers.set('idempotency-key', `"${message.dedupId.replace(/["\\]/g, '\\$&')}"`)
  headers.set('webhook-id', message.dedupId)
  return headers
}

function isFieldText(text: string): boolean {
  return /^[\x20-\x7e]+$/.test(text)
}

/** These mean "later", the other 4xx mean "never". */
const laterStatus: ReadonlySet<number> = new Set([408, 425, 429])

async function judge(response: Response, clock: Clock): Promise<DeliveryResult> {
  const { status } = response
  if (status >= 200 && status < 300) {
    const downstreamId = (await idIn(response)) ?? response.headers.get('location') ?? undefined
    return downstreamId === undefined ? { kind: 'delivered' } : { kind: 'delivered', downstreamId }
  }
  await response.body?.cancel()
  const error = `HTTP ${status}`
  if (status >= 400 && status < 500 && !laterStatus.has(status)) return { kind: 'refused', error }
  const retryAfterMs = retryAfter(response.headers.get('retry-after'), clock)
  return retryAfterMs === undefined ? { kind: 'failed', error } : { kind: 'failed', error, retryAfterMs }
}

/** Rejects when the response breaks off: the message is then sent again, so that its id is not lost. */
async function idIn(response: Response): Promise<string | undefined> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength
    // Leaving the loop cancels the rest.
    if (bytes > answerBytesMax) return undefined
    chunks.push(chunk)
  }
  try {
    const answer: unknown = JSON.parse(Buffer.concat(chunks).toString('utf8'))
    const id: unknown = typeof answer === 'object' && answer !== null ? Reflect.get(answer, 'id') : undefined
    if (typeof id === 'number') return String(id)
    return typeof id === 'string' && id !== '' ? id.slice(0, 255) : undefined
  } catch {
    return undefined
  }
}

/** Seconds or a date (RFC 9110, section 10.2.3). */
function retryAfter(field: string | null, clock: Clock): number | undefined {
  if (field === null) return undefined
  const ms = /^\d+$/.test(field) ? Number(field) * 1_000 : Date.parse(field) - clock.nowMs()
  return ms > 0 ? Math.min(ms, retryAfterMsMax) : undefined
}
