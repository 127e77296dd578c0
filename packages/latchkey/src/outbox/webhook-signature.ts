/** Standard Webhooks: `webhook-signature: v1,<base64 HMAC-SHA256 of "id.timestamp.body">`. */
import { createHmac } from 'node:crypto'
import { misconfigured } from '../ports/errors.ts'

/** The specification asks for 24 to 64 random bytes. */
const secretBytesMin = 24
const secretBytesMax = 64

export interface SignedMessage {
  readonly id: string
  /** Seconds since 1970. */
  readonly timestamp: number
  readonly body: Uint8Array
}

/** `whsec_` and base64, or the base64 alone. No error contains the secret. */
export function webhookKey(secret: string): Buffer {
  const text = secret.startsWith('whsec_') ? secret.slice('whsec_'.length) : secret
  const key = Buffer.from(text, 'base64')
  const sound = /^[A-Za-z0-9+/]+={0,2}$/.test(text) && key.length >= secretBytesMin && key.length <= secretBytesMax
  if (sound) return key
  throw misconfigured(
    `the webhook secret must be "whsec_" and the base64 of ${secretBytesMin} to ${secretBytesMax} random bytes`,
  )
}

/** Several keys while one replaces another: a receiver accepts any signature it can verify. */
export function webhookSignature(keys: readonly Buffer[], { id, timestamp, body }: SignedMessage): string {
  const one = (key: Buffer) => createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64')
  return keys.map(key => `v1,${one(key)}`).join(' ')
}
