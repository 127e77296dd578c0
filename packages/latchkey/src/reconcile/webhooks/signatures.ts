/** Verifies who signed a webhook, and when: over its raw bytes, in constant time, before any of it is parsed. */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { checkOptions, type ChecksOf } from '../../ports/check-options.ts'
import { misconfigured } from '../../ports/errors.ts'
import { anything, durationUpTo, listOf, secret } from '../../ports/option-kinds.ts'

export interface WebhookMessage {
  header(name: string): string | undefined
  /** The raw bytes as received. */
  readonly body: Uint8Array
  readonly nowMs: number
}

/**
 * `id` names the message and is the same for each of its deliveries; `signedAtMs` belongs to this delivery. `stale`: signed outside the tolerance,
 * in the past or in the future.
 */
export type Verified =
  | { readonly kind: 'genuine'; readonly id: string; readonly signedAtMs: number; readonly event: unknown }
  | { readonly kind: 'refused'; readonly why: 'forged' | 'stale' | 'malformed' }

/** Write such a function for a scheme of your own. It must not parse the body before it has verified the signature. */
export type VerifyWebhook = (message: WebhookMessage) => Verified | Promise<Verified>

export interface SignatureOptions {
  /** A signature by any of them is accepted: list two while one replaces the other. */
  readonly secrets: readonly string[]
  /** How far the time of signing may differ from ours, in both directions. Default 300 s, as in the senders' own libraries. */
  readonly toleranceMs?: number
}

const toleranceDefaultMs = 300_000
/** With a tolerance of more than a day, a recorded message would pass as a new one. */
const toleranceMs = durationUpTo(24 * 3_600_000, 'a day')
const signatureChecks: ChecksOf<SignatureOptions> = { secrets: secret(listOf(anything)), toleranceMs }
/** While secrets are rotated a sender signs twice; each signature costs a comparison. */
const signaturesMax = 16
/** Together with the webhook's name it identifies the evidence, in at most 200 characters. */
const idCharactersMax = 128

const refused = (why: 'forged' | 'stale' | 'malformed'): Verified => ({ kind: 'refused', why })

/** Standard Webhooks: `webhook-id`, `webhook-timestamp`, `webhook-signature: v1,<base64>`. Secrets are `whsec_` and base64. */
export function standardWebhooks(options: SignatureOptions): VerifyWebhook {
  const toleranceMs = checkedTolerance('standardWebhooks', options)
  const keys = checkedSecrets('standardWebhooks', options).map(standardKey)
  return message => {
    const id = message.header('webhook-id') ?? ''
    const timestamp = message.header('webhook-timestamp') ?? ''
    // A dot would make the signed text ambiguous.
    if (!isId(id) || id.includes('.') || !isTimestamp(timestamp)) return refused('malformed')
    const signatures = (message.header('webhook-signature') ?? '').split(' ').flatMap(one => {
      const [version, value = ''] = one.split(',')
      return version === 'v1' ? [Buffer.from(value, 'base64')] : []
    })
    const signed = { prefix: `${id}.${timestamp}.`, body: message.body }
    if (!isSignedBy(keys, signatures, signed)) return refused('forged')
    return genuine(message, { timestamp, toleranceMs, idOf: () => id })
  }
}

/** Stripe: `Stripe-Signature: t=<seconds>,v1=<hex>`. The secret is the whole text, `whsec_` included; the message's id is in its body. */
export function stripeWebhooks(options: SignatureOptions): VerifyWebhook {
  const toleranceMs = checkedTolerance('stripeWebhooks', options)
  const keys = checkedSecrets('stripeWebhooks', options).map(secret => Buffer.from(secret))
  return message => {
    const fields = (message.header('stripe-signature') ?? '').split(',').map(field => field.trim().split('='))
    const values = (name: string) => fields.flatMap(([key, value = '']) => (key === name ? [value] : []))
    const [timestamp = '', second] = values('t')
    if (!isTimestamp(timestamp) || second !== undefined) return refused('malformed')
    const signatures = values('v1').map(value => Buffer.from(value, 'hex'))
    if (!isSignedBy(keys, signatures, { prefix: `${timestamp}.`, body: message.body })) return refused('forged')
    return genuine(message, { timestamp, toleranceMs, idOf: bodyId })
  }
}

interface Signed {
  readonly prefix: string
  readonly body: Uint8Array
}

/** Every signature is compared with every key, so that the time does not reveal which one is valid. */
function isSignedBy(keys: readonly Buffer[], signatures: readonly Buffer[], { prefix, body }: Signed): boolean {
  const digests = keys.map(key => createHmac('sha256', key).update(prefix).update(body).digest())
  let fits = false
  for (const signature of signatures.slice(0, signaturesMax)) {
    for (const digest of digests) {
      if (signature.length === digest.length && timingSafeEqual(signature, digest)) fits = true
    }
  }
  return fits
}

interface SignedAt {
  readonly timestamp: string
  readonly toleranceMs: number
  readonly idOf: (event: unknown) => unknown
}

function genuine({ body, nowMs }: WebhookMessage, { timestamp, toleranceMs, idOf }: SignedAt): Verified {
  const signedAtMs = Number(timestamp) * 1_000
  if (Math.abs(nowMs - signedAtMs) > toleranceMs) return refused('stale')
  const event = parsed(body)
  const id = idOf(event)
  if (event === undefined || !isId(id)) return refused('malformed')
  return { kind: 'genuine', id, signedAtMs, event }
}

function parsed(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body))
  } catch {
    return undefined
  }
}

function bodyId(event: unknown): unknown {
  return typeof event === 'object' && event !== null && 'id' in event ? event.id : undefined
}

function isId(id: unknown): id is string {
  return typeof id === 'string' && /^[\x21-\x7e]+$/.test(id) && id.length <= idCharactersMax
}

function isTimestamp(text: string): boolean {
  return /^\d{1,11}$/.test(text)
}

function checkedTolerance(scheme: string, options: SignatureOptions): number {
  checkOptions(scheme, options, signatureChecks)
  return options.toleranceMs ?? toleranceDefaultMs
}

function checkedSecrets(scheme: string, { secrets }: SignatureOptions): readonly string[] {
  const usable =
    Array.isArray(secrets) && secrets.length > 0 && secrets.every(one => typeof one === 'string' && one.length >= 8)
  if (usable) return secrets
  throw misconfigured(`${scheme} needs secrets: a list of at least one, as the sender displays it`)
}

/** The specification asks for 24 to 64 bytes. No error contains the secret. */
function standardKey(secret: string): Buffer {
  const text = secret.startsWith('whsec_') ? secret.slice('whsec_'.length) : secret
  const key = Buffer.from(text, 'base64')
  if (/^[A-Za-z0-9+/]+={0,2}$/.test(text) && key.length >= 24 && key.length <= 64) return key
  throw misconfigured('standardWebhooks: a secret must be "whsec_" and the base64 of 24 to 64 random bytes')
}
