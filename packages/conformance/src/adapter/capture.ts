/** How a response may end, and what is stored of it. */
import assert from 'node:assert/strict'
import { Agent } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import type { AdapterCase, HandlerReply } from '../adapter-harness.ts'
import {
  answer,
  assertProblem,
  assertReplay,
  counted,
  created,
  eventually,
  gate,
  noise,
  withApp,
  route,
} from './fixture.ts'

const rerun = { onFailure: 'rerun' } as const

const chunks = [Buffer.from('one '), Buffer.from([0, 255, 254]), Buffer.from(' three')]

export const captureCases: readonly AdapterCase[] = [
  {
    name: 'replays a redirect with its Location, and does not run again',
    async run(harness) {
      const count = counted()
      await withApp(
        harness,
        latchkey => [
          route(
            latchkey.guarded('orders.create', rerun),
            { kind: 'redirect', status: 303, location: '/orders/7' },
            { count },
          ),
        ],
        async ({ post }) => {
          const first = await post('/orders', { key: 'k' })
          const again = await post('/orders', { key: 'k' })
          assertReplay(first, again)
          assert.deepEqual(
            [first.status, first.header('Location'), again.header('Location'), count.runs],
            [303, '/orders/7', '/orders/7', 1],
          )
        },
      )
    },
  },
  {
    name: 'gives an over-cap response whole to the first client and tells the retry, with nothing run again',
    async run(harness) {
      const count = counted()
      const bytes = noise(4_096)
      const headers = [
        ['Location', '/orders/9'],
        ['ETag', '"v9"'],
        ['Content-Type', 'application/octet-stream'],
      ] as const
      await withApp(
        harness,
        latchkey => [
          route(latchkey.guarded('orders.create', { ...rerun, outcomeBytesMax: 1_024 }), answer(201, bytes, headers), {
            count,
          }),
        ],
        async ({ post }) => {
          const first = await post('/orders', { key: 'k' })
          assert.ok(first.body.equals(bytes))
          const again = await post('/orders', { key: 'k' })
          assertProblem(again, 410, 'response-not-stored')
          assert.equal(again.json()['original_status'], 201)
          assert.deepEqual([again.header('Location'), again.header('ETag'), count.runs], ['/orders/9', '"v9"', 1])
        },
      )
    },
  },
  {
    name: 'finishes and stores when the client disconnects in the middle, and replays to the retry',
    async run(harness) {
      const count = counted()
      const door = gate()
      await withApp(
        harness,
        latchkey => [
          route(
            latchkey.guarded('orders.create', { onFailure: 'hold' }),
            async (_, run) => {
              await door.pass()
              return created(run)
            },
            { count },
          ),
        ],
        async ({ open, post, store, id }) => {
          const impatient = open('/orders', { key: 'k', body: { sku: 1 } })
          impatient.received.catch(() => {})
          await door.reached
          impatient.drop()
          // Long enough for the server to have seen the disconnect while the handler still runs.
          await pause(150)
          door.open()
          await eventually(
            'the outcome is stored',
            async () => (await store.read(id('orders.create', 'k')))?.state === 'completed',
          )
          const retry = await post('/orders', { key: 'k', body: { sku: 1 } })
          assert.deepEqual(
            [retry.status, retry.body.toString(), retry.header('Idempotent-Replayed')],
            [201, '{"order":1}', 'true'],
          )
          assert.equal(count.runs, 1)
        },
      )
    },
  },
  {
    name: 'keeps one connection usable through first answers, replays and refusals',
    async run(harness) {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 })
      try {
        await withApp(
          harness,
          latchkey => [route(latchkey.guarded('orders.create', rerun), (_, run) => created(run))],
          async ({ post }) => {
            const statuses: string[] = []
            for (const [key, sku] of [
              ['a', 1],
              ['a', 1],
              ['a', 2],
              ['b', 1],
              [undefined, 1],
              ['b', 1],
            ] as const) {
              const { status, header } = await post('/orders', {
                agent,
                body: { sku },
                ...(key === undefined ? {} : { key }),
              })
              statuses.push(`${status} ${header('Idempotent-Replayed') ?? ''}`.trim())
            }
            assert.deepEqual(statuses, ['201', '201 true', '422', '201', '400', '201 true'])
          },
        )
      } finally {
        agent.destroy()
      }
    },
  },
  {
    name: 'reserves nothing before the body is complete, nor for an upload that breaks off',
    async run(harness) {
      const count = counted()
      await withApp(
        harness,
        latchkey => [route(latchkey.guarded('orders.create', rerun), (_, run) => created(run), { count })],
        async ({ open, post, store }) => {
          const half = open('/orders', { key: 'k', body: { sku: 'x'.repeat(1_000) }, bodyBytes: 100 })
          half.received.catch(() => {})
          await pause(150)
          assert.equal((await store.list({ limit: 10 })).records.length, 0)
          half.drop()
          await pause(50)
          assert.deepEqual([(await store.list({ limit: 10 })).records.length, count.runs], [0, 0])
          assert.equal((await post('/orders', { key: 'k', body: { sku: 1 } })).status, 201)
        },
      )
    },
  },
  {
    name: 'never stores a response that breaks off, and lets the retry run',
    needs: ['broken-stream'],
    async run(harness) {
      const count = counted()
      const half: HandlerReply = { kind: 'stream', status: 200, headers: [], chunks, breaks: true }
      await withApp(
        harness,
        latchkey => [
          route(latchkey.guarded('orders.create', rerun), (_, run) => (run === 1 ? half : created(run)), { count }),
        ],
        async ({ post }) => {
          const first = await post('/orders', { key: 'k' }).catch(() => undefined)
          assert.ok(first === undefined || first.status >= 500, 'a broken response never looks complete')
          const again = await post('/orders', { key: 'k' })
          assert.deepEqual([again.status, again.header('Idempotent-Replayed'), count.runs], [201, undefined, 2])
        },
      )
    },
  },
  {
    name: 'sends a 103 at once and keeps it out of what is stored',
    needs: ['early-hints'],
    async run(harness) {
      const door = gate()
      const link = '</style.css>; rel=preload; as=style'
      const reply: HandlerReply = {
        kind: 'early-hints',
        link,
        proceed: door.pass(),
        status: 200,
        headers: [],
        body: Buffer.from('late'),
      }
      await withApp(
        harness,
        latchkey => [route(latchkey.guarded('orders.create', rerun), reply)],
        async ({ post, open }) => {
          const informed: number[] = []
          const first = open('/orders', { key: 'k', onInformation: status => informed.push(status) })
          await eventually('the 103 arrives while the handler runs', () => informed.includes(103))
          door.open()
          const again = await first.received.then(() =>
            post('/orders', { key: 'k', onInformation: status => informed.push(status) }),
          )
          assertReplay(await first.received, again)
          assert.deepEqual(informed, [103])
        },
      )
    },
  },
  {
    name: 'sends trailers to the first client and declares the response unreplayable',
    needs: ['trailers'],
    async run(harness) {
      const count = counted()
      const reply: HandlerReply = {
        kind: 'trailers',
        status: 200,
        headers: [],
        body: Buffer.from('sum'),
        trailers: { 'X-Sum': '42' },
      }
      await withApp(
        harness,
        latchkey => [route(latchkey.guarded('orders.create', rerun), reply, { count })],
        async ({ post }) => {
          const first = await post('/orders', { key: 'k' })
          assert.deepEqual([first.body.toString(), first.trailers['x-sum']], ['sum', '42'])
          assertProblem(await post('/orders', { key: 'k' }), 410, 'response-not-stored')
          assert.equal(count.runs, 1)
        },
      )
    },
  },
]
