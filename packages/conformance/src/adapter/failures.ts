/** Handlers that fail, stores that are down, hooks that throw. */
import assert from 'node:assert/strict'
import { LatchkeyError, notExecuted, outcomeUnknown, type Store, type Telemetry } from 'latchkey'
import type { AdapterCase, HandlerReply, HandlerInput } from '../adapter-harness.ts'
import { answer, assertProblem, assertReplay, counted, created, eventually, withApp, route } from './fixture.ts'

const rerun = { onFailure: 'rerun' } as const

const failsFirst = (failure: HandlerReply) => (_: unknown, run: number) => (run === 1 ? failure : created(run))
const crash: HandlerReply = { kind: 'crash', error: new TypeError('cannot read properties of undefined') }

const failures: readonly AdapterCase[] = [
  ...(
    [
      ['returns a 500', answer(500, 'oops')],
      ['throws', crash],
      ['returns a 429', answer(429, 'slow down', [['Retry-After', '3']])],
      ['says that nothing was executed', { kind: 'crash', error: notExecuted(new Error('refused')) }],
    ] as const
  ).map(([what, failure]): AdapterCase => ({
    name: `runs the retry after a handler that ${what}, where repeating is harmless`,
    async run(harness) {
      const count = counted()
      await withApp(
        harness,
        latchkey => [route(latchkey.guarded('orders.create', rerun), failsFirst(failure), { count })],
        async ({ post }) => {
          const first = await post('/orders', { key: 'k' })
          assert.equal(first.status, failure.kind === 'answer' ? failure.status : 500)
          assert.equal(first.header('Latchkey-Retry'), undefined, "the answer is the framework's own")
          const again = await post('/orders', { key: 'k' })
          assert.deepEqual([again.status, again.header('Idempotent-Replayed'), count.runs], [201, undefined, 2])
        },
      )
    },
  })),
  ...(
    [
      ['throws', crash],
      ['returns a 500', answer(500, 'oops')],
      ['says that the outcome is unknown', { kind: 'crash', error: outcomeUnknown(new Error('timed out')) }],
    ] as const
  ).map(([what, failure]): AdapterCase => ({
    name: `tells the caller 504 and every retry 409 after a handler that ${what} and is held, and runs once`,
    async run(harness) {
      const count = counted()
      await withApp(
        harness,
        latchkey => [route(latchkey.guarded('orders.create', { onFailure: 'hold' }), failsFirst(failure), { count })],
        async ({ post }) => {
          const first = await post('/orders', { key: 'k' })
          assertProblem(first, 504, 'outcome-unknown')
          const again = await post('/orders', { key: 'k' })
          assertProblem(again, 409, 'outcome-unknown')
          for (const one of [first, again]) assert.ok(Number(one.header('Retry-After')) >= 1)
          assert.equal(count.runs, 1)
        },
      )
    },
  })),
  {
    name: 'leaves nothing of the handler in the 504 that replaces its answer',
    async run(harness) {
      const reply = answer(500, 'a stack trace', [
        ['ETag', '"v1"'],
        ['Set-Cookie', 'a=1'],
        ['Content-Encoding', 'identity'],
      ])
      await withApp(
        harness,
        latchkey => [route(latchkey.guarded('orders.create', { onFailure: 'hold' }), reply)],
        async ({ post }) => {
          const first = await post('/orders', { key: 'k' })
          assertProblem(first, 504, 'outcome-unknown')
          for (const name of ['ETag', 'Set-Cookie', 'Content-Encoding'])
            assert.equal(first.header(name), undefined, name)
          assert.equal(first.header('X-Outer'), 'always')
        },
        { outerHeaders: [['X-Outer', 'always']] },
      )
    },
  },
  {
    name: "keeps an error answer and replays it where the operation says 'store'",
    async run(harness) {
      const count = counted()
      await withApp(
        harness,
        latchkey => [
          route(latchkey.guarded('orders.create', { onFailure: 'store' }), answer(502, 'bad upstream'), { count }),
        ],
        async ({ post }) => {
          assertReplay(await post('/orders', { key: 'k' }), await post('/orders', { key: 'k' }))
          assert.equal(count.runs, 1)
        },
      )
    },
  },
  ...[402, 403, 404, 429].flatMap(status =>
    (
      [
        ['returned', answer(status, '{"declined":true}', [['Content-Type', 'application/json']])],
        ['thrown', { kind: 'throw', status, message: 'declined' }],
      ] as const
    ).map(([how, reply]): AdapterCase => ({
      name: `stores a ${how} ${status} of a held operation and does not run again`,
      async run(harness) {
        const count = counted()
        await withApp(
          harness,
          latchkey => [route(latchkey.guarded('orders.create', { onFailure: 'hold' }), reply, { count })],
          async ({ post }) => {
            const first = await post('/orders', { key: 'k' })
            assert.equal(first.status, status)
            assertReplay(first, await post('/orders', { key: 'k' }))
            assert.equal(count.runs, 1)
          },
        )
      },
    })),
  ),
  {
    name: 'frees the key of a held operation whose handler said notExecuted() before it answered',
    async run(harness) {
      const count = counted()
      const busyFirst = ({ execution }: HandlerInput, run: number) => {
        if (run > 1) return created(run)
        execution?.notExecuted()
        return answer(429, 'slow down', [['Retry-After', '3']])
      }
      await withApp(
        harness,
        latchkey => [route(latchkey.guarded('orders.create', { onFailure: 'hold' }), busyFirst, { count })],
        async ({ post }) => {
          const first = await post('/orders', { key: 'k' })
          assert.deepEqual([first.status, first.header('Retry-After')], [429, '3'])
          const again = await post('/orders', { key: 'k' })
          assert.deepEqual([again.status, again.header('Idempotent-Replayed'), count.runs], [201, undefined, 2])
          assertReplay(again, await post('/orders', { key: 'k' }))
        },
      )
    },
  },
]

/** A store that can be switched off, as if the network were. */
function switchable(store: Store, power: { on: boolean }): Store {
  return new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name)
      if (typeof value !== 'function') return value
      return (...args: unknown[]) =>
        power.on ? Reflect.apply(value, target, args) : Promise.reject(new Error('ECONNREFUSED'))
    },
  })
}

const outages: readonly AdapterCase[] = [
  {
    name: 'does not hang on a store that never answers: 503, and nothing runs',
    async run(harness) {
      const count = counted()
      await withApp(
        harness,
        latchkey => [route(latchkey.guarded('orders.create', rerun), created(1), { count })],
        async ({ post }) => {
          assertProblem(await post('/orders', { key: 'k' }), 503, 'store-unavailable')
          assert.equal(count.runs, 0)
        },
        { store: { ...harness.memoryStore(), claim: () => new Promise(() => {}) } },
      )
    },
  },
  {
    name: 'answers 503 without running while the store is down, and serves again once it is back',
    async run(harness) {
      const count = counted()
      const power = { on: false }
      await withApp(
        harness,
        latchkey => [route(latchkey.guarded('orders.create', rerun), created(1), { count })],
        async ({ post }) => {
          for (let tries = 0; tries < 7; tries++) {
            const down = await post('/orders', { key: 'k' })
            assertProblem(down, 503, 'store-unavailable')
            assert.ok(Number(down.header('Retry-After')) >= 1)
          }
          assert.equal(count.runs, 0)
          power.on = true
          await eventually('service resumes', async () => (await post('/orders', { key: 'k' })).status === 201)
          assert.equal((await post('/orders', { key: 'k' })).header('Idempotent-Replayed'), 'true')
          assert.equal(count.runs, 1)
        },
        { store: switchable(harness.memoryStore(), power) },
      )
    },
  },
  {
    name: 'runs unprotected while the store is down where the operation allows it, counts it and marks the answer',
    async run(harness) {
      const metrics: string[] = []
      await withApp(
        harness,
        latchkey => [
          route(latchkey.guarded('orders.create', { ...rerun, onStoreDown: 'run-unprotected' }), created(1)),
        ],
        async ({ post }) => {
          const received = await post('/orders', { key: 'k' })
          assert.deepEqual([received.status, received.header('Idempotency-Stored')], [201, 'false'])
          assert.ok(metrics.includes('unprotected'))
        },
        {
          store: switchable(harness.memoryStore(), { on: false }),
          telemetry: { count: metric => void metrics.push(metric), observe() {}, report() {} },
        },
      )
    },
  },
  {
    name: 'sends the real answer marked as unstored when the store fails after the work succeeded',
    async run(harness) {
      const power = { on: true }
      await withApp(
        harness,
        latchkey => [
          route(latchkey.guarded('orders.create', { ...rerun, leaseMs: 1_500 }), () => {
            power.on = false
            return created(1)
          }),
        ],
        async ({ post }) => {
          const received = await post('/orders', { key: 'k' })
          assert.deepEqual(
            [received.status, received.body.toString(), received.header('Idempotency-Stored')],
            [201, '{"order":1}', 'false'],
          )
          power.on = true
        },
        { store: switchable(harness.memoryStore(), power) },
      )
    },
  },
]

const throwing: Telemetry = {
  count: () => fail(),
  observe: () => fail(),
  report: () => fail(),
}

function fail(): never {
  throw new LatchkeyError('invariant', 'an observer that always throws')
}

const hooks: readonly AdapterCase[] = [
  {
    name: 'gives the same answers when observers and describe throw',
    async run(harness) {
      const count = counted()
      await withApp(
        harness,
        latchkey => [route(latchkey.guarded('orders.create', { ...rerun, describe: fail }), created(1), { count })],
        async ({ post }) => {
          assertReplay(await post('/orders', { key: 'k', body: {} }), await post('/orders', { key: 'k', body: {} }))
          assertProblem(await post('/orders', { key: 'k', body: { other: 1 } }), 422, 'key-reused')
          assert.equal(count.runs, 1)
        },
        { telemetry: throwing },
      )
    },
  },
  {
    name: 'describes the row from the parsed body and never tells an observer the key',
    async run(harness) {
      const told: string[] = []
      const tell = (...args: unknown[]) => void told.push(JSON.stringify(args))
      // The route's bodies are the case's own.
      const describe = (input: unknown) => `sku ${(input as { sku: string }).sku}`
      await withApp(
        harness,
        latchkey => [route(latchkey.guarded('orders.create', { ...rerun, describe }), created(1))],
        async ({ post, store, id }) => {
          const key = 'very-secret-key'
          await post('/orders', { key, body: { sku: 'A-1' } })
          await post('/orders', { key, body: { sku: 'A-1' } })
          await post('/orders', { key, body: { sku: 'A-2' } })
          assert.equal((await store.read(id('orders.create', key)))?.description, 'sku A-1')
          assert.ok(told.length > 0 && !told.join().includes(key))
        },
        { telemetry: { count: tell, observe: tell, report: tell } },
      )
    },
  },
]

export const failureCases: readonly AdapterCase[] = [...failures, ...outages, ...hooks]
