/** Keys, scopes and fingerprints, as a client sees them. */
import assert from 'node:assert/strict'
import type { AdapterCase, AdapterHarness } from '../adapter-harness.ts'
import type { SentRequest } from './client.ts'
import { answer, assertProblem, assertReplay, counted, created, gate, withApp, route } from './fixture.ts'

const rerun = { onFailure: 'rerun' } as const

/** The request is refused with this problem, nothing ran and nothing is reserved. */
async function refusedOutright(harness: AdapterHarness, sent: SentRequest, expected: [number, string]): Promise<void> {
  const count = counted()
  await withApp(
    harness,
    latchkey => [route(latchkey.guarded('orders.create', rerun), created(1), { count })],
    async ({ post, store }) => {
      assertProblem(await post('/orders', sent), ...expected)
      assert.equal(count.runs, 0)
      assert.equal((await store.list({ limit: 10 })).records.length, 0, 'nothing is reserved')
    },
  )
}

const badKeys: readonly [string, string | readonly string[]][] = [
  ['an empty', ''],
  ['an empty quoted', '""'],
  ['a comma-joined', '"a", "b"'],
  ['a twice sent', ['"a"', '"b"']],
  ['two half-quoted lines as the', ['"a', 'b"']],
  ['a non-ASCII', 'cl\u00e9'],
  ['an over-long', 'k'.repeat(256)],
  ['a half-quoted', '"abc'],
]

const keys: readonly AdapterCase[] = [
  {
    name: 'refuses a covered request without a key, and reserves nothing',
    run: harness => refusedOutright(harness, { body: { sku: 1 } }, [400, 'missing-key']),
  },
  ...badKeys.map(([what, key]): AdapterCase => ({
    name: `refuses ${what} key field, and reserves nothing`,
    run: harness => refusedOutright(harness, { key, body: { sku: 1 } }, [400, 'invalid-key']),
  })),
  {
    name: 'takes the quoted and the bare spelling for one key, and keys that differ in case for two',
    async run(harness) {
      const count = counted()
      await withApp(
        harness,
        latchkey => [route(latchkey.guarded('orders.create', rerun), (_, run) => created(run), { count })],
        async ({ post }) => {
          assertReplay(await post('/orders', { key: 'Abc-1' }), await post('/orders', { key: '"Abc-1"' }))
          assert.equal((await post('/orders', { key: 'abc-1' })).header('Idempotent-Replayed'), undefined)
          assert.equal((await post('/orders', { key: '"Abc-1 "' })).header('Idempotent-Replayed'), undefined)
          assert.equal(count.runs, 3)
        },
      )
    },
  },
  {
    name: 'runs unprotected, every time, without a key where that is allowed, and counts it',
    async run(harness) {
      const count = counted()
      const metrics: string[] = []
      await withApp(
        harness,
        latchkey => [
          route(
            latchkey.guarded('orders.create', { ...rerun, onMissingKey: 'run-unprotected' }),
            (_, run) => created(run),
            { count },
          ),
        ],
        async ({ post }) => {
          assert.equal((await post('/orders', { body: {} })).status, 201)
          assert.equal((await post('/orders', { body: {} })).status, 201)
          assert.equal(count.runs, 2)
          // A handler may get an execution without a claim; no grant has fence 0.
          assert.equal(count.inputs[0]?.execution?.fence ?? 0, 0)
          assert.equal(metrics.filter(metric => metric === 'unprotected').length, 2)
        },
        { telemetry: { count: metric => void metrics.push(metric), observe() {}, report() {} } },
      )
    },
  },
  ...(['GET', 'PUT', 'DELETE'] as const).map((method): AdapterCase => ({
    name: `lets ${method} through without a key, and runs it every time with one`,
    async run(harness) {
      const count = counted()
      await withApp(
        harness,
        latchkey => [route(latchkey.guarded('orders.read', rerun), answer(200, 'listed'), { count, method })],
        async ({ post }) => {
          assert.equal((await post('/orders', { method })).status, 200)
          assert.equal((await post('/orders', { method, key: 'k' })).status, 200)
          assert.equal((await post('/orders', { method, key: 'k' })).header('Idempotent-Replayed'), undefined)
          assert.equal(count.runs, 3)
        },
      )
    },
  })),
  {
    name: 'covers PATCH, and a method that opted in, in whatever spelling',
    async run(harness) {
      await withApp(
        harness,
        latchkey => [
          route(latchkey.guarded('orders.change', rerun), answer(200, 'changed'), { method: 'PATCH' }),
          route(latchkey.guarded('orders.put', { ...rerun, methods: ['PUT'] }), answer(200, 'put'), { method: 'PUT' }),
          route(latchkey.guarded('orders.drop', { ...rerun, methods: ['delete'] }), answer(200, 'gone'), {
            method: 'DELETE',
          }),
        ],
        async ({ post }) => {
          for (const method of ['PATCH', 'PUT', 'DELETE']) {
            assertReplay(await post('/orders', { method, key: 'k' }), await post('/orders', { method, key: 'k' }))
          }
        },
      )
    },
  },
  {
    name: 'hands the handler its body, and an execution that names the key and the operation',
    async run(harness) {
      const count = counted()
      await withApp(
        harness,
        latchkey => [route(latchkey.guarded('orders.create', rerun), created(1), { count })],
        async ({ post }) => {
          await post('/orders', { key: 'k', body: { sku: 'A', list: [1, 2] } })
          const [input] = count.inputs
          assert.deepEqual(input?.body, { sku: 'A', list: [1, 2] })
          assert.deepEqual(
            [input?.execution?.key, input?.execution?.operation, input?.execution?.attempt],
            ['k', 'orders.create', 1],
          )
        },
      )
    },
  },
]

const reuse: readonly [string, SentRequest, string, string][] = [
  ['another body', { body: { sku: 2 } }, '/orders/1', 'body'],
  ['another query', { body: { sku: 1 } }, '/orders/1?fast=1', 'query'],
  ['another path', { body: { sku: 1 } }, '/orders/2', 'path'],
]

const fingerprints: readonly AdapterCase[] = [
  ...reuse.map(([what, sent, path, part]): AdapterCase => ({
    name: `refuses a key that comes back with ${what}, names the part, and leaves the record alone`,
    async run(harness) {
      const count = counted()
      await withApp(
        harness,
        latchkey => [
          route(latchkey.guarded('orders.create', rerun), (_, run) => created(run), { count, path: '/orders/:id' }),
        ],
        async ({ post }) => {
          const first = await post('/orders/1', { key: 'k', body: { sku: 1 } })
          const misuse = await post(path, { key: 'k', ...sent })
          assertProblem(misuse, 422, 'key-reused')
          assert.deepEqual(misuse.json()['differing_parts'], [part])
          assert.equal(misuse.header('Latchkey-Retry'), 'no')
          assertReplay(first, await post('/orders/1', { key: 'k', body: { sku: 1 } }))
          assert.equal(count.runs, 1)
        },
      )
    },
  })),
  {
    name: 'compares whole bodies where a path of include leads to nothing, and reports that once',
    async run(harness) {
      const reports: string[] = []
      const telemetry = { count() {}, observe() {}, report: (message: string) => void reports.push(message) }
      const options = { ...rerun, fingerprint: { include: ['currency', 'ammount'] } }
      await withApp(
        harness,
        latchkey => [route(latchkey.guarded('orders.create', options), created(1))],
        async ({ post }) => {
          const first = await post('/orders', { key: 'k', body: { amount: 1, currency: 'EUR' } })
          assertProblem(await post('/orders', { key: 'k', body: { amount: 2, currency: 'EUR' } }), 422, 'key-reused')
          assertReplay(first, await post('/orders', { key: 'k', body: { currency: 'EUR', amount: 1 } }))
          assert.equal(reports.filter(message => message.includes('"ammount"')).length, 1)
        },
        { telemetry },
      )
    },
  },
  {
    name: 'takes another order of names and other white space for the same request, and another array order for another',
    async run(harness) {
      await withApp(
        harness,
        latchkey => [route(latchkey.guarded('orders.create', rerun), created(1))],
        async ({ post }) => {
          const first = await post('/orders', { key: 'k', body: '{"a":1,"b":[1,2]}' })
          assertReplay(first, await post('/orders', { key: 'k', body: '{ "b": [1, 2], "a": 1.0 }' }))
          for (const body of ['{"a":1,"b":[2,1]}', '{"a":"1","b":[1,2]}', '{"a":1,"b":[1,2],"c":null}']) {
            assertProblem(await post('/orders', { key: 'k', body }), 422, 'key-reused')
          }
        },
      )
    },
  },
  {
    name: 'says misuse rather than in progress while the first request runs',
    async run(harness) {
      const door = gate()
      await withApp(
        harness,
        latchkey => [
          route(latchkey.guarded('orders.create', rerun), async () => {
            await door.pass()
            return created(1)
          }),
        ],
        async ({ open, post }) => {
          const first = open('/orders', { key: 'k', body: { sku: 1 } })
          await door.reached
          assertProblem(await post('/orders', { key: 'k', body: { sku: 2 } }), 422, 'key-reused')
          door.open()
          assert.equal((await first.received).status, 201)
        },
      )
    },
  },
  {
    name: 'runs two requests with the same body and different keys both',
    async run(harness) {
      const count = counted()
      await withApp(
        harness,
        latchkey => [route(latchkey.guarded('orders.create', rerun), (_, run) => created(run), { count })],
        async ({ post }) => {
          await post('/orders', { key: 'k1', body: { sku: 1 } })
          assert.equal((await post('/orders', { key: 'k2', body: { sku: 1 } })).status, 201)
          assert.equal(count.runs, 2)
        },
      )
    },
  },
  {
    name: 'speaks the other profile where the site asks for it',
    async run(harness) {
      await withApp(
        harness,
        latchkey => [route(latchkey.guarded('orders.create', rerun), created(1))],
        async ({ post }) => {
          await post('/orders', { key: 'k', body: { sku: 1 } })
          const misuse = await post('/orders', { key: 'k', body: { sku: 2 } })
          assert.deepEqual([misuse.status, misuse.header('Content-Type')], [400, 'application/json'])
          // The shape is what this case is about.
          assert.equal((misuse.json()['error'] as { type: string }).type, 'idempotency_error')
        },
        { http: { profile: 'stripe' } },
      )
    },
  },
  {
    name: "sends a problem in the application's own shape, with the headers that a client acts on",
    async run(harness) {
      await withApp(
        harness,
        latchkey => [route(latchkey.guarded('orders.create', rerun), created(1))],
        async ({ post }) => {
          await post('/orders', { key: 'k', body: { sku: 1 } })
          const misuse = await post('/orders', { key: 'k', body: { sku: 2 } })
          assert.deepEqual([misuse.status, misuse.header('Content-Type')], [418, 'application/json'])
          assert.deepEqual(misuse.json(), { error: { code: 'key-reused', of: 'acme', differing_parts: ['body'] } })
          assert.deepEqual([misuse.header('Latchkey-Retry'), misuse.header('X-Own')], ['no', 'yes'])
          // Nothing was returned for it, so it is Latchkey's own.
          assertProblem(await post('/orders', { body: {} }), 400, 'missing-key')
        },
        {
          http: {
            renderProblem({ code, extensions }, context) {
              if (code === 'missing-key') return undefined
              const of = harness.headerOf(context, 'x-tenant')
              return { status: 418, headers: { 'X-Own': 'yes' }, body: { error: { code, of, ...extensions } } }
            },
          },
        },
      )
    },
  },
  {
    name: 'calls onReplay with the request and the row of each replay, and replays although it throws',
    async run(harness) {
      const seen: unknown[] = []
      await withApp(
        harness,
        latchkey => [route(latchkey.guarded('orders.create', rerun), created(1))],
        async ({ post, id }) => {
          const from = (caller: string) => post('/orders', { key: 'k', headers: { 'x-caller': caller } })
          const first = await from('ann')
          assert.deepEqual(seen, [])
          assertReplay(first, await from('bob'))
          assertReplay(first, await from('eve'))
          assertProblem(await post('/orders', { key: 'k', body: { sku: 2 } }), 422, 'key-reused')
          const row = id('orders.create', 'k')
          assert.deepEqual(seen, [`bob ${row}`, `eve ${row}`])
        },
        {
          http: {
            onReplay(context, record) {
              seen.push(`${harness.headerOf(context, 'x-caller')} ${record.id}`)
              throw new Error('an observer that fails')
            },
          },
        },
      )
    },
  },
]

const scopes: readonly AdapterCase[] = [
  {
    name: "never answers one operation with another's outcome, unless one key spans them; then it is misuse",
    async run(harness) {
      const wide = { ...rerun, keyNamespace: 'scope' } as const
      const blind = { ...wide, fingerprint: { custom: () => 'the same' } }
      await withApp(
        harness,
        latchkey => [
          route(latchkey.guarded('orders.create', rerun), answer(201, 'order'), { path: '/orders' }),
          route(latchkey.guarded('refunds.create', rerun), answer(201, 'refund'), { path: '/refunds' }),
          route(latchkey.guarded('wide.orders', wide), answer(201, 'order'), { path: '/wide/orders' }),
          route(latchkey.guarded('wide.refunds', wide), answer(201, 'refund'), { path: '/wide/refunds' }),
          route(latchkey.guarded('blind.orders', blind), answer(201, 'order'), { path: '/blind/orders' }),
          route(latchkey.guarded('blind.refunds', blind), answer(201, 'refund'), { path: '/blind/refunds' }),
        ],
        async ({ post }) => {
          assert.equal((await post('/orders', { key: 'k' })).body.toString(), 'order')
          assert.equal((await post('/refunds', { key: 'k' })).body.toString(), 'refund')
          assert.equal((await post('/wide/orders', { key: 'w' })).body.toString(), 'order')
          assertProblem(await post('/wide/refunds', { key: 'w' }), 422, 'key-reused')
          assert.equal((await post('/blind/orders', { key: 'b' })).body.toString(), 'order')
          assertProblem(await post('/blind/refunds', { key: 'b' }), 422, 'key-reused')
        },
      )
    },
  },
  {
    name: 'keeps two tenants with one key apart',
    async run(harness) {
      const count = counted()
      await withApp(
        harness,
        latchkey => [route(latchkey.guarded('orders.create', rerun), (_, run) => created(run), { count })],
        async ({ post }) => {
          const acme = await post('/orders', { key: 'k', body: { sku: 1 }, headers: { 'x-tenant': 'acme' } })
          const bolt = await post('/orders', { key: 'k', body: { sku: 2 }, headers: { 'x-tenant': 'bolt' } })
          assert.deepEqual([acme.body.toString(), bolt.body.toString()], ['{"order":1}', '{"order":2}'])
          assertReplay(bolt, await post('/orders', { key: 'k', body: { sku: 2 }, headers: { 'x-tenant': 'bolt' } }))
          assert.equal(count.runs, 2)
        },
      )
    },
  },
  ...['', 'unresolvable'].map((tenant): AdapterCase => ({
    name: `does not run when the scope ${tenant === '' ? 'is empty' : 'throws'}`,
    run: harness => refusedOutright(harness, { key: 'k', headers: { 'x-tenant': tenant } }, [500, 'scope-unresolved']),
  })),
  ...[
    ['a lone surrogate', 'half of a pair'] as const,
    ['another lone surrogate', 'another half'] as const,
    ['U+0000', 'nothing'] as const,
    ['more than 1,024 bytes', 'without end'] as const,
  ].map(([what, tenant]): AdapterCase => ({
    name: `does not run when the scope holds ${what}: it could be taken for another tenant's`,
    run: harness => refusedOutright(harness, { key: 'k', headers: { 'x-tenant': tenant } }, [500, 'scope-unresolved']),
  })),
  {
    name: 'asks authorizeReplay with the caller of the retry before it tells anything of the row',
    async run(harness) {
      const count = counted()
      const options = {
        ...rerun,
        authorizeReplay: (context: unknown) => harness.headerOf(context, 'x-principal') === 'ann',
      }
      await withApp(
        harness,
        latchkey => [route(latchkey.guarded('orders.create', options), created(1), { count })],
        async ({ post }) => {
          const as = (principal: string, sku = 1) =>
            post('/orders', { key: 'k', body: { sku }, headers: { 'x-principal': principal } })
          const first = await as('ann')
          assertProblem(await as('bob'), 403, 'replay-not-authorized')
          assertProblem(await as('bob', 2), 403, 'replay-not-authorized')
          assertReplay(first, await as('ann'))
          assert.equal(count.runs, 1)
        },
      )
    },
  },
]

export const keyCases: readonly AdapterCase[] = [...keys, ...fingerprints, ...scopes]
