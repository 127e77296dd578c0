/** Key, business rows and answer in one commit, seen through HTTP. */
import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import type { AdapterCase, AdapterHarness, Reply, TransactionalHarness } from '../adapter-harness.ts'
import {
  answer,
  assertProblem,
  assertReplay,
  counted,
  created,
  gate,
  onStage,
  route,
  type Counted,
  type Stage,
  txOf,
} from './fixture.ts'

interface Atomic {
  readonly stage: Stage
  readonly count: Counted
  readonly database: TransactionalHarness
}

/** One atomic route that inserts a row and then replies. */
async function onAtomicStage(
  harness: AdapterHarness,
  reply: (run: number) => Reply | Promise<Reply>,
  play: (atomic: Atomic) => Promise<void>,
): Promise<void> {
  const database = await harness.transactional?.()
  assert.ok(database !== undefined, 'the harness provides a transactional store')
  const count = counted()
  try {
    await onStage(
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
      stage => play({ stage, count, database }),
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
      onAtomicStage(harness, created, async ({ stage, count, database }) => {
        let seen: Promise<unknown> | undefined
        const onFirstByte = () => void (seen = stage.store.read(stage.id('orders.create', 'k')))
        const first = await stage.post('/orders', { key: 'k', body: { sku: 1 }, onFirstByte })
        assert.equal(((await seen) as { state: string } | undefined)?.state, 'completed') // a KeyRecord, from read above
        assertReplay(first, await stage.post('/orders', { key: 'k', body: { sku: 1 } }))
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
        async ({ stage, count, database }) => {
          assert.equal((await stage.post('/orders', { key: 'k' })).status, 500)
          assert.deepEqual(await database.values(), [])
          const again = await stage.post('/orders', { key: 'k' })
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
        async ({ stage, count, database }) => {
          const first = await stage.post('/orders', { key: 'k' })
          assert.equal(first.status, 409)
          assertReplay(first, await stage.post('/orders', { key: 'k' }))
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
        async ({ stage, count, database }) => {
          assertReplay(await stage.post('/orders', { key: 'k' }), await stage.post('/orders', { key: 'k' }))
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
        async ({ stage, count, database }) => {
          const impatient = stage.open('/orders', { key: 'k' })
          impatient.received.catch(() => {})
          await door.reached
          impatient.drop()
          await pause(100)
          door.open()
          const retried = await untilReplayed(stage)
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
      onAtomicStage(harness, created, async ({ stage, count, database }) => {
        const first = await stage.post('/orders', { key: 'k', body: { sku: 1 } })
        assertProblem(await stage.post('/orders', { key: 'k', body: { sku: 2 } }), 422, 'key-reused')
        assertReplay(first, await stage.post('/orders', { key: 'k', body: { sku: 1 } }))
        assert.deepEqual([count.runs, await database.values()], [1, ['order-1']])
      }),
  },
]

async function untilReplayed(stage: Stage): Promise<Awaited<ReturnType<Stage['post']>>> {
  for (let tries = 0; tries < 400; tries++) {
    const received = await stage.post('/orders', { key: 'k' })
    if (received.status !== 409) return received
    await pause(25)
  }
  return assert.fail('the first execution never ended')
}
