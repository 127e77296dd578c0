import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { webhookKey, webhookSignature } from './webhook-signature.ts'

interface Vector {
  readonly name: string
  readonly secret: string
  readonly id: string
  readonly timestamp: number
  readonly payload: string
  readonly signature: string
}

const vectors: readonly Vector[] = JSON.parse(
  readFileSync(new URL('./vectors/standard-webhooks.json', import.meta.url), 'utf8'),
)

it.each(vectors)('signs as Standard Webhooks does: $name', ({ secret, id, timestamp, payload, signature }) => {
  expect(webhookSignature([webhookKey(secret)], { id, timestamp, body: Buffer.from(payload) })).toBe(signature)
})

it('signs with every secret while one replaces another', () => {
  const keys = [Buffer.alloc(24, 1), Buffer.alloc(32, 2)]
  const signed = { id: 'm', timestamp: 1, body: Buffer.from('{}') }
  const [first, second] = keys.map(key => webhookSignature([key], signed))
  expect(webhookSignature(keys, signed)).toBe(`${first} ${second}`)
  expect(first).not.toBe(second)
})

it('refuses a secret that is none, and does not repeat it', () => {
  for (const secret of ['', 'whsec_', 'whsec_c2hvcnQ=', 'not base64 at all, but long enough', 'A'.repeat(100)]) {
    expect(() => webhookKey(secret)).toThrow(expect.objectContaining({ code: 'misconfigured' }))
    if (secret.length > 8) expect(() => webhookKey(secret)).not.toThrow(secret)
  }
})
