import { createHmac } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { standardWebhooks, stripeWebhooks, type Verified, type VerifyWebhook } from './signatures.ts'

interface Vectors {
  readonly standard_webhooks: readonly {
    name: string
    secret: string
    id: string
    timestamp: number
    payload: string
    signature: string
    now: number
    valid: boolean
  }[]
  readonly stripe_hmac_primitive: readonly { secret: string; message: string; hex: string }[]
  readonly stripe_signature: readonly {
    name: string
    secret: string
    payload: string
    header: string
    now: number
    valid: boolean
  }[]
}

const vectors: Vectors = JSON.parse(readFileSync(new URL('./vectors/signatures.json', import.meta.url), 'utf8'))

interface Delivery {
  readonly headers: Readonly<Record<string, string>>
  readonly payload: string | Uint8Array
  readonly now: number
}

async function verified(verify: VerifyWebhook, { headers, payload, now }: Delivery): Promise<Verified> {
  return verify({ header: name => headers[name], body: Buffer.from(payload as string), nowMs: now * 1_000 })
}

describe('Standard Webhooks', () => {
  it.each(vectors.standard_webhooks)('agrees with the vector: $name', async vector => {
    const { secret, id, timestamp, payload, signature, now, valid } = vector
    const headers = { 'webhook-id': id, 'webhook-timestamp': String(timestamp), 'webhook-signature': signature }
    const result = await verified(standardWebhooks({ secrets: [secret] }), { headers, payload, now })
    expect(result.kind).toBe(valid ? 'genuine' : 'refused')
    if (valid) expect(result).toMatchObject({ id, signedAtMs: timestamp * 1_000, event: JSON.parse(payload) })
  })

  const keys = [Buffer.alloc(24, 1), Buffer.alloc(32, 2)] as const
  const secrets = keys.map(key => `whsec_${key.toString('base64')}`)
  const delivery = (over: { id?: string; timestamp?: string; body?: string; key?: Buffer } = {}): Delivery => {
    const { id = 'msg_1', timestamp = '1000', body = '{"a":1}', key = keys[0] } = over
    const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')
    const headers = { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${signature}` }
    return { headers, payload: body, now: 1_000 }
  }

  it('takes a signature of any of its secrets, and of no other', async () => {
    const verify = standardWebhooks({ secrets })
    expect(await verified(verify, delivery({ key: keys[0] }))).toMatchObject({ kind: 'genuine' })
    expect(await verified(verify, delivery({ key: keys[1] }))).toMatchObject({ kind: 'genuine' })
    expect(await verified(verify, delivery({ key: Buffer.alloc(24, 3) }))).toEqual({ kind: 'refused', why: 'forged' })
  })

  it.each([
    ['an id with a dot, which makes the signed text ambiguous', { id: 'msg.1' }],
    ['no id', { id: '' }],
    ['an id that is too long to be remembered', { id: 'm'.repeat(129) }],
    ['a timestamp that is no number', { timestamp: '1e3' }],
    ['a body that is not JSON', { body: 'hello' }],
  ])('calls %s malformed, however well it is signed', async (_, over) => {
    expect(await verified(standardWebhooks({ secrets }), delivery(over))).toEqual({ kind: 'refused', why: 'malformed' })
  })

  it('calls a body that is not UTF-8 malformed', async () => {
    const payload = Buffer.from([0x22, 0xff, 0x22])
    const signature = createHmac('sha256', keys[0]).update('msg_1.1000.').update(payload).digest('base64')
    const headers = { ...delivery().headers, 'webhook-signature': `v1,${signature}` }
    const result = await verified(standardWebhooks({ secrets }), { headers, payload, now: 1_000 })
    expect(result).toEqual({ kind: 'refused', why: 'malformed' })
  })

  it('keeps its own tolerance, both ways', async () => {
    const verify = standardWebhooks({ secrets, toleranceMs: 10_000 })
    for (const [now, kind] of [
      [990, 'genuine'],
      [989, 'refused'],
      [1_010, 'genuine'],
      [1_011, 'refused'],
    ] as const) {
      expect((await verified(verify, { ...delivery(), now })).kind).toBe(kind)
    }
  })
})

describe('Stripe', () => {
  it.each(vectors.stripe_signature)(
    'agrees with the vector: $name',
    async ({ secret, payload, header, now, valid }) => {
      const verify = stripeWebhooks({ secrets: [secret] })
      const result = await verified(verify, { headers: { 'stripe-signature': header }, payload, now })
      expect(result.kind).toBe(valid ? 'genuine' : 'refused')
      if (valid) expect(result).toMatchObject({ id: 'evt_test_webhook', signedAtMs: 1_700_000_000_000 })
    },
  )

  const sign = (secret: string, payload: string, t = 1_700_000_000) =>
    `t=${t},v1=${createHmac('sha256', secret).update(`${t}.${payload}`).digest('hex')}`

  it.each(vectors.stripe_hmac_primitive)('makes the primitive of $message', ({ secret, message, hex }) => {
    // The primitive is Node's; the vector ties the header that the tests below sign to it.
    expect(createHmac('sha256', secret).update(message).digest('hex')).toBe(hex)
  })

  it('takes a signature of any of its secrets', async () => {
    const payload = '{"id":"evt_1"}'
    const verify = stripeWebhooks({ secrets: ['whsec_the_old_one', 'whsec_the_new_one'] })
    for (const [secret, kind] of [
      ['whsec_the_old_one', 'genuine'],
      ['whsec_the_new_one', 'genuine'],
      ['whsec_another_one', 'refused'],
    ] as const) {
      const headers = { 'stripe-signature': sign(secret, payload) }
      expect((await verified(verify, { headers, payload, now: 1_700_000_000 })).kind).toBe(kind)
    }
  })

  it('refuses a time in the future, an event without an id, and two times', async () => {
    const secret = 'whsec_test_secret'
    const verify = stripeWebhooks({ secrets: [secret] })
    const ask = (header: string, payload: string) =>
      verified(verify, { headers: { 'stripe-signature': header }, payload, now: 1_700_000_000 })
    const payload = '{"id":"evt_1"}'
    expect(await ask(sign(secret, payload, 1_700_000_301), payload)).toEqual({ kind: 'refused', why: 'stale' })
    expect(await ask(sign(secret, '{"id":7}'), '{"id":7}')).toEqual({ kind: 'refused', why: 'malformed' })
    expect(await ask(`t=1,${sign(secret, payload)}`, payload)).toEqual({ kind: 'refused', why: 'malformed' })
  })
})

it.each([
  ['no secrets', () => standardWebhooks({ secrets: [] }), 'needs secrets'],
  ['an empty secret', () => stripeWebhooks({ secrets: [''] }), 'needs secrets'],
  ['a secret that is no base64', () => standardWebhooks({ secrets: ['whsec_not base64'] }), 'must be "whsec_"'],
  ['a tolerance of zero', () => stripeWebhooks({ secrets: ['whsec_abcdef'], toleranceMs: 0 }), 'toleranceMs must be'],
])('refuses %s at construction', (_, make, message) => {
  expect(make).toThrow(expect.objectContaining({ code: 'misconfigured', message: expect.stringContaining(message) }))
})
