/** The response of the application's error handler is what the client gets, what is judged, and what every retry gets. */
import assert from 'node:assert/strict'
import { AppError, type AdapterCase, type AdapterNeed } from '../adapter-harness.ts'
import { assertProblem, assertReplay, counted, created, withApp, route } from './fixture.ts'

const needs: readonly AdapterNeed[] = ['error-handler']
const text = 'rendered by the application'

const thrown = (status: number) => ({ kind: 'crash', error: new AppError(status, text) }) as const

/** With what the app's error handler renders, and whether that is stored. */
const stored: readonly (readonly ['hold' | 'rerun' | 'store', readonly number[]])[] = [
  ['hold', [403, 404, 429]],
  ['rerun', [404]],
  ['store', [403, 404, 429, 503]],
]

const storedCases: readonly AdapterCase[] = stored.flatMap(([onFailure, statuses]) =>
  statuses.map((status): AdapterCase => ({
    name: `stores and replays the ${status} that the app's error handler renders, under ${onFailure}`,
    needs,
    async run(harness) {
      const count = counted()
      await withApp(
        harness,
        latchkey => [route(latchkey.guarded('orders.create', { onFailure }), thrown(status), { count })],
        async ({ post }) => {
          const first = await post('/orders', { key: 'k' })
          assert.deepEqual([first.status, first.body.toString()], [status, text])
          assertReplay(first, await post('/orders', { key: 'k' }))
          assert.equal(count.runs, 1)
        },
      )
    },
  })),
)

const others: readonly AdapterCase[] = [
  {
    name: "runs the retry after a 503 that the app's error handler renders, where repeating is harmless",
    needs,
    async run(harness) {
      const count = counted()
      const reply = (_: unknown, run: number) => (run === 1 ? thrown(503) : created(run))
      await withApp(
        harness,
        latchkey => [route(latchkey.guarded('orders.create', { onFailure: 'rerun' }), reply, { count })],
        async ({ post }) => {
          const first = await post('/orders', { key: 'k' })
          assert.deepEqual([first.status, first.body.toString()], [503, text])
          assert.deepEqual([(await post('/orders', { key: 'k' })).status, count.runs], [201, 2])
        },
      )
    },
  },
  {
    name: "holds the key after a 503 that the app's error handler renders, and answers 504 in its place",
    needs,
    async run(harness) {
      const count = counted()
      await withApp(
        harness,
        latchkey => [route(latchkey.guarded('orders.create', { onFailure: 'hold' }), thrown(503), { count })],
        async ({ post }) => {
          assertProblem(await post('/orders', { key: 'k' }), 504, 'outcome-unknown')
          assertProblem(await post('/orders', { key: 'k' }), 409, 'outcome-unknown')
          assert.equal(count.runs, 1)
        },
      )
    },
  },
  {
    name: "stores the 404 that the app's error handler renders of an atomic operation, and none of its rows",
    needs: [...needs, 'transactional'],
    async run(harness) {
      const database = await harness.transactional?.()
      assert.ok(database !== undefined, 'the harness provides a transactional store')
      const count = counted()
      try {
        await withApp(
          harness,
          latchkey => [route(latchkey.atomic('orders.create'), thrown(404), { count })],
          async ({ post }) => {
            const first = await post('/orders', { key: 'k' })
            assert.deepEqual([first.status, first.body.toString()], [404, text])
            assertReplay(first, await post('/orders', { key: 'k' }))
            assert.deepEqual([count.runs, await database.values()], [1, []])
          },
          { store: database.store },
        )
      } finally {
        await database.close()
      }
    },
  },
]

export const errorHandlerCases: readonly AdapterCase[] = [...storedCases, ...others]
