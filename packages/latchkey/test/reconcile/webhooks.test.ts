import { createHmac } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { createLatchkey, json, outcomeUnknown, singleTenant } from 'latchkey'
import { createReconciler, standardWebhooks, type EvidenceInput, stripeWebhooks } from 'latchkey/reconcile'
import { memoryStore } from 'latchkey/stores/memory'
import { systemClock } from '../../src/ports/clock.ts'
import { recordingTelemetry } from '../engine/fixture.ts'
import { secret, signedWebhook } from './fixture.ts'

type Said = EvidenceInput | undefined | Promise<EvidenceInput | undefined>

async function newScene(evidence: (event: never, id: string) => Said) {
  const telemetry = recordingTelemetry()
  const time = { aheadMs: 0 }
  const clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + time.aheadMs }
  const inner = memoryStore({ clock })
  const faults = { store: false }
  const reconciliation: typeof inner.reconciliation = {
    ...inner.reconciliation,
    keep: (...given) =>
      faults.store ? Promise.reject(new Error('connection terminated')) : inner.reconciliation.keep(...given),
  }
  const latchkey = createLatchkey({ store: { ...inner, reconciliation }, scope: singleTenant, telemetry })
  const pay = latchkey.guarded('payments.create', { onFailure: 'hold' })
  const unknown = () => pay.run({ scope: 'acme', key: 'k', input: 1 }, () => Promise.reject(outcomeUnknown()))
  await unknown().catch(() => undefined)
  const id = latchkey.identify({ scope: 'acme', operation: 'payments.create', key: 'k' })
  const reconcile = createReconciler(latchkey)
  const handler = reconcile.webhook<never>({
    name: 'provider',
    verify: standardWebhooks({ secrets: [secret] }),
    evidence: event => evidence(event, id),
  })
  const stateOf = async () => (await latchkey.inspect({ id })).record?.state
  return { telemetry, latchkey, reconcile, handler, faults, time, id, stateOf }
}

const happened = (_: unknown, id: string): Said => ({ id, verdict: { kind: 'happened', outcome: json(201, {}) } })

describe('a webhook', () => {
  it('asks its sender to come again while the store is down, and is taken then', async () => {
    const { handler, faults, telemetry, stateOf } = await newScene(happened)
    faults.store = true
    const refused = await handler(signedWebhook({}))
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '10'])
    expect(telemetry.told).toContainEqual(['reconcile.failed', { detail: 'provider: store' }])
    faults.store = false
    expect((await handler(signedWebhook({}, { inSeconds: 1 }))).status).toBe(200)
    expect(await stateOf()).toBe('completed')
  })

  it.each([
    ['throws', () => Promise.reject(new Error('no such event'))],
    ['says nothing that is a verdict', () => ({ id: 'x', verdict: { kind: 'maybe' } }) as never],
    ['is not sure', () => ({ id: 'x', verdict: { kind: 'still-unknown' } }) as never],
  ])('is answered 500 and counted when its evidence %s', async (_, evidence) => {
    const { handler, telemetry, stateOf } = await newScene(evidence)
    expect((await handler(signedWebhook({}))).status).toBe(500)
    expect(telemetry.told).toContainEqual(['reconcile.failed', { detail: 'provider: evidence' }])
    expect(await stateOf()).toBe('unknown')
  })

  it('is taken and ignored when it concerns nothing here', async () => {
    const { handler, telemetry } = await newScene(() => undefined)
    const response = await handler(signedWebhook({}))
    expect([response.status, await response.json()]).toEqual([200, { received: true }])
    expect(telemetry.told).not.toContainEqual(['reconcile.refused', expect.anything()])
  })

  it.each([
    ['a row that is not here', { id: '00000000-0000-4000-8000-000000000000' }],
    ['an id that is none', { id: "'; drop table keys" }],
    ['a downstream key that is none', { downstreamKey: 'pay-1' }],
    ['a downstream key that is not ours', { downstreamKey: '00000000-0000-4000-8000-000000000000' }],
  ])('is taken and counted when it speaks of %s', async (_, name) => {
    const { handler, telemetry } = await newScene(() => ({ ...name, verdict: { kind: 'never-happened' } }))
    expect((await handler(signedWebhook({}))).status).toBe(200)
    expect(telemetry.told).toContainEqual(['reconcile.refused', { detail: 'provider: no-row' }])
  })

  it('reads no more than a megabyte, and only what is posted', async () => {
    const { handler, telemetry } = await newScene(happened)
    let chunks = 0
    const body = new ReadableStream({
      pull(controller) {
        chunks += 1
        controller.enqueue(new Uint8Array(65_536))
      },
    })
    const large = new Request('http://shop.test/hooks', { method: 'POST', body, duplex: 'half' } as RequestInit)
    expect((await handler(large)).status).toBe(413)
    expect(chunks).toBeLessThan(20)
    expect(telemetry.told).toContainEqual(['reconcile.refused', { detail: 'provider: too-large' }])
    const get = await handler(new Request('http://shop.test/hooks'))
    expect([get.status, get.headers.get('allow')]).toEqual([405, 'POST'])
  })

  it('tells people why it was refused, as a problem', async () => {
    const { handler } = await newScene(happened)
    const response = await handler(new Request('http://shop.test/hooks', { method: 'POST', body: '{}' }))
    expect(response.headers.get('content-type')).toBe('application/problem+json')
    expect(await response.json()).toEqual({
      type: 'urn:latchkey:problem:webhook-refused',
      status: 400,
      title: 'Webhook refused',
      detail: 'This message is not a signed webhook.',
      reason: 'malformed',
    })
  })

  it('never takes a negative that was signed before the quarantine had passed', async () => {
    const { handler, stateOf } = await newScene((_, id) => ({ id, verdict: { kind: 'never-happened' } }))
    expect((await handler(signedWebhook({}))).status).toBe(200)
    expect((await handler(signedWebhook({}, { inSeconds: 2 }))).status).toBe(200)
    expect(await stateOf()).toBe('unknown')
  })

  it('takes a negative for as old as its signature, not as young as its arrival', async () => {
    const { handler, stateOf, time } = await newScene((_, id) => ({ id, verdict: { kind: 'never-happened' } }))
    // By the store's clock the quarantine of ten minutes ended half a minute ago.
    time.aheadMs = 630_000
    expect((await handler(signedWebhook({}, { id: 'msg_before', inSeconds: -60 }))).status).toBe(200)
    expect(await stateOf()).toBe('unknown')
    expect((await handler(signedWebhook({}, { id: 'msg_after' }))).status).toBe(200)
    expect(await stateOf()).toBe('failed_retryable')
  })

  it('may come from Stripe', async () => {
    const { reconcile, stateOf, id } = await newScene(happened)
    const handler = reconcile.webhook<{ type: string; data: { object: { metadata: { operation: string } } } }>({
      name: 'stripe',
      verify: stripeWebhooks({ secrets: ['whsec_test_secret'] }),
      evidence: ({ type, data }) =>
        type === 'charge.succeeded'
          ? { id: data.object.metadata.operation, verdict: { kind: 'happened', outcome: json(201, {}) } }
          : undefined,
    })
    const body = JSON.stringify({
      id: 'evt_1',
      type: 'charge.succeeded',
      data: { object: { metadata: { operation: id } } },
    })
    const t = Math.floor(Date.now() / 1_000)
    const v1 = createHmac('sha256', 'whsec_test_secret').update(`${t}.${body}`).digest('hex')
    const headers = { 'stripe-signature': `t=${t},v1=${v1}` }
    expect((await handler(new Request('http://shop.test/', { method: 'POST', headers, body }))).status).toBe(200)
    expect(await stateOf()).toBe('completed')
  })
})
