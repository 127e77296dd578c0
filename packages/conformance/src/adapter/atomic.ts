/** Key, business rows and answer in one commit, seen through HTTP. */
import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import type { AdapterCase, AdapterHarness, HandlerReply, TransactionalHarness } from '../adapter-harness.ts'
import {
  answer,
  assertProblem,
  assertReplay,
  counted,
  created,
  gate,
  withApp,
  route,
  type Counted,
  type AppFixture,
  txOf,
} from './fixture.ts'

interface Atomic {
  readonly fixture: AppFixture
  readonly count: Counted
  readonly database: TransactionalHarness
}

/** One atomic route that inserts a row and then replies. */
async function onAtomicStage(
  harness: AdapterHarness,
  reply: (run: number) => HandlerReply | Promise<HandlerReply>,
  run: (atomic: Atomic) => Promise<void>,
): Promise<void> {
  const database = await harness.transactional?.()
  assert.ok(database !== undefined, 'the harness provides a transactional store')
  const count = counted()
  try {
    await withApp(
      harness,
      latchkey => [
        route(
          latchkey.atomic('orders.create'),
          async ({ execution }, run) => {
            await database.insert(txOf(execution), `order-${run}`)
            return reply(run)
          },
          { count },
        ),
      ],
      fixture => run({ fixture, count, database }),
      { store: database.store },
    )
  } finally {
    await database.close()
  }
}

export const atomicCases: readonly AdapterCase[] = [
  {
    name: 'commits the row with the answer, once, before the client sees the first byte',
    needs: ['transactional'],
    run: harness =>
      onAtomicStage(harness, created, async ({ fixture, count, database }) => {
        let seen: Promise<unknown> | undefined
        const onFirstByte = () => void (seen = fixture.store.read(fixture.id('orders.create', 'k')))
        const first = await fixture.post('/orders', { key: 'k', body: { sku: 1 }, onFirstByte })
        assert.equal(((await seen) as { state: string } | undefined)?.state, 'completed') // a KeyRecord, from read above
        assertReplay(first, await fixture.post('/orders', { key: 'k', body: { sku: 1 } }))
        assert.deepEqual([count.runs, await database.values()], [1, ['order-1']])
      }),
  },
  ...(
    [
      ['is returned as a 500', answer(500, 'oops')],
      ['is thrown', { kind: 'crash', error: new Error('constraint') }],
    ] as const
  ).map(([what, failure]): AdapterCase => ({
    name: `rolls back, stores nothing and runs the retry when a failure ${what}`,
    needs: ['transactional'],
    run: harness =>
      onAtomicStage(
        harness,
        run => (run === 1 ? failure : created(run)),
        async ({ fixture, count, database }) => {
          assert.equal((await fixture.post('/orders', { key: 'k' })).status, 500)
          assert.deepEqual(await database.values(), [])
          const again = await fixture.post('/orders', { key: 'k' })
          assert.deepEqual([again.status, again.header('Idempotent-Replayed'), count.runs], [201, undefined, 2])
          assert.deepEqual(await database.values(), ['order-2'])
        },
      ),
  })),
  {
    name: 'rolls the rows of a thrown 4xx back, keeps the answer, and does not run again',
    needs: ['transactional'],
    run: harness =>
      onAtomicStage(
        harness,
        () => ({ kind: 'throw', status: 409, message: 'out of stock' }),
        async ({ fixture, count, database }) => {
          const first = await fixture.post('/orders', { key: 'k' })
          assert.equal(first.status, 409)
          assertReplay(first, await fixture.post('/orders', { key: 'k' }))
          assert.deepEqual([count.runs, await database.values()], [1, []])
        },
      ),
  },
  {
    name: 'commits the rows of a returned 4xx with the answer',
    needs: ['transactional'],
    run: harness =>
      onAtomicStage(
        harness,
        () => answer(404, 'noted'),
        async ({ fixture, count, database }) => {
          assertReplay(await fixture.post('/orders', { key: 'k' }), await fixture.post('/orders', { key: 'k' }))
          assert.deepEqual([count.runs, await database.values()], [1, ['order-1']])
        },
      ),
  },
  {
    name: 'commits although the client disconnected, and replays to the retry',
    needs: ['transactional'],
    run(harness) {
      const door = gate()
      return onAtomicStage(
        harness,
        async run => {
          await door.pass()
          return created(run)
        },
        async ({ fixture, count, database }) => {
          const impatient = fixture.open('/orders', { key: 'k' })
          impatient.received.catch(() => {})
          await door.reached
          impatient.drop()
          await pause(100)
          door.open()
          const retried = await untilReplayed(fixture)
          assert.deepEqual([retried.status, retried.body.toString()], [201, '{"order":1}'])
          assert.deepEqual([count.runs, await database.values()], [1, ['order-1']])
        },
      )
    },
  },
  {
    name: 'refuses misuse after the commit and leaves rows and answer alone',
    needs: ['transactional'],
    run: harness =>
      onAtomicStage(harness, created, async ({ fixture, count, database }) => {
        const first = await fixture.post('/orders', { key: 'k', body: { sku: 1 } })
        assertProblem(await fixture.post('/orders', { key: 'k', body: { sku: 2 } }), 422, 'key-reused')
        assertReplay(first, await fixture.post('/orders', { key: 'k', body: { sku: 1 } }))
        assert.deepEqual([count.runs, await database.values()], [1, ['order-1']])
      }),
  },
]

async function untilReplayed(fixture: AppFixture): Promise<Awaited<ReturnType<AppFixture['post']>>> {
  for (let tries = 0; tries < 400; tries++) {
    const received = await fixture.post('/orders', { key: 'k' })
    if (received.status !== 409) return received
    await pause(25)
  }
  return assert.fail('the first execution never ended')
}
