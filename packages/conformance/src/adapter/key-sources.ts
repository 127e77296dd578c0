/** Keys that arrive under another name, or elsewhere in the request. */
import assert from 'node:assert/strict'
import type { AdapterCase, AdapterHarness } from '../adapter-harness.ts'
import type { SentRequest } from './client.ts'
import { assertProblem, assertReplay, counted, created, route, withApp } from './fixture.ts'

const rerun = { onFailure: 'rerun' } as const
const paypal = { ...rerun, key: { header: 'PayPal-Request-Id' } } as const

/** As Square's clients send it: `{ "idempotency_key": "…" }`. */
function square(harness: AdapterHarness) {
  return {
    ...rerun,
    async key(context: unknown): Promise<string | undefined> {
      // Whatever the client sent: what is not text, Latchkey refuses.
      const body = (await harness.bodyOf?.(context)) as { readonly idempotency_key?: string; readonly broken?: boolean }
      if (body.broken === true) throw new Error('no such field')
      return body.idempotency_key
    },
  }
}

export const keySourceCases: readonly AdapterCase[] = [
  {
    name: 'reads the key from the header that the operation names, and from no other',
    async run(harness) {
      const count = counted()
      await withApp(
        harness,
        latchkey => [route(latchkey.guarded('orders.create', paypal), (_, run) => created(run), { count })],
        async ({ post }) => {
          const sent: SentRequest = { headers: { 'PayPal-Request-Id': 'k' }, body: { sku: 1 } }
          assertReplay(await post('/orders', sent), await post('/orders', { ...sent, key: 'another' }))
          assert.equal(count.inputs[0]?.execution?.key, 'k')
          const missing = await post('/orders', { key: 'k', body: { sku: 1 } })
          assertProblem(missing, 400, 'missing-key')
          assert.match(String(missing.json()['detail']), /the request header PayPal-Request-Id,/)
          const invalid = await post('/orders', { headers: { 'PayPal-Request-Id': 'a b' } })
          assertProblem(invalid, 400, 'invalid-key')
          assert.match(String(invalid.json()['detail']), /^The field PayPal-Request-Id does not/)
          assert.equal(count.runs, 1)
        },
      )
    },
  },
  {
    name: 'reads a header of another name in any spelling, also where Idempotency-Key must be quoted',
    async run(harness) {
      await withApp(
        harness,
        latchkey => [
          route(latchkey.guarded('orders.create', paypal), created(1)),
          route(latchkey.guarded('quoted.create', rerun), created(1), { path: '/quoted' }),
        ],
        async ({ post }) => {
          const bare = await post('/orders', { headers: { 'paypal-request-id': 'k' } })
          assertReplay(bare, await post('/orders', { headers: { 'PAYPAL-REQUEST-ID': '"k"' } }))
          assertProblem(await post('/quoted', { key: 'k' }), 400, 'invalid-key')
        },
        { http: { strictSyntax: true } },
      )
    },
  },
  {
    name: 'reads the key from the body with a function, and leaves the body to the handler',
    needs: ['body'],
    async run(harness) {
      const count = counted()
      await withApp(
        harness,
        latchkey => [route(latchkey.guarded('orders.create', square(harness)), (_, run) => created(run), { count })],
        async ({ post }) => {
          const body = { idempotency_key: 'cl\u00e9 1', sku: 1 }
          assertReplay(await post('/orders', { body }), await post('/orders', { body, key: 'ignored' }))
          assert.equal(count.inputs[0]?.execution?.key, 'cl\u00e9 1')
          assert.deepEqual(count.inputs[0]?.body, body)
          assertProblem(await post('/orders', { body: { ...body, sku: 2 } }), 422, 'key-reused')
          assert.equal((await post('/orders', { body: { ...body, idempotency_key: '2' } })).status, 201)
          assert.equal(count.runs, 2)
        },
      )
    },
  },
  {
    name: 'refuses a key in the body that is absent, is no text or cannot be read, and reserves nothing',
    needs: ['body'],
    async run(harness) {
      const count = counted()
      const reports: string[] = []
      await withApp(
        harness,
        latchkey => [route(latchkey.guarded('orders.create', square(harness)), created(1), { count })],
        async ({ post, store }) => {
          const missing = await post('/orders', { body: { sku: 1 }, key: 'k' })
          assertProblem(missing, 400, 'missing-key')
          assert.doesNotMatch(String(missing.json()['detail']), /header/)
          const wrong = [7, null, ['k'], '', 'x'.repeat(256), '\ud800']
          for (const key of wrong)
            assertProblem(await post('/orders', { body: { idempotency_key: key } }), 400, 'invalid-key')
          assert.equal(reports.length, 0)
          assertProblem(await post('/orders', { body: { broken: true } }), 400, 'invalid-key')
          assert.deepEqual(reports, ['the key could not be read, so the request was refused'])
          assert.equal(count.runs, 0)
          assert.equal((await store.list({ limit: 10 })).records.length, 0)
        },
        { telemetry: { count() {}, observe() {}, report: message => void reports.push(message) } },
      )
    },
  },
  {
    name: 'limits the body before a function reads the key in it',
    needs: ['body'],
    async run(harness) {
      let calls = 0
      const key = () => {
        calls += 1
        return 'k'
      }
      await withApp(
        harness,
        latchkey => [route(latchkey.guarded('orders.create', { ...rerun, key, bodyBytesMax: 64 }), created(1))],
        async ({ post }) => {
          assertProblem(await post('/orders', { body: { sku: 'x'.repeat(64) } }), 413, 'body-too-large')
          assert.equal(calls, 0)
          assert.equal((await post('/orders', { body: { sku: 'x' } })).status, 201)
        },
      )
    },
  },
]
