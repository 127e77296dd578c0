/** Concurrent duplicates, and what is durable when. */
import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import type { Store } from 'latchkey'
import type { AdapterCase } from '../adapter-harness.ts'
import { assertProblem, counted, created, type Gate, gate, withApp, route } from './fixture.ts'

const rerun = { onFailure: 'rerun' } as const

function waiting(door: Gate): (input: unknown, run: number) => Promise<ReturnType<typeof created>> {
  return async (_, run) => {
    await door.pass()
    return created(run)
  }
}

export const concurrencyCases: readonly AdapterCase[] = [
  {
    name: 'answers 409 with Retry-After while the first runs, and never keeps that 409',
    async run(harness) {
      const count = counted()
      const door = gate()
      await withApp(
        harness,
        latchkey => [route(latchkey.guarded('orders.create', rerun), waiting(door), { count })],
        async ({ open, post }) => {
          const first = open('/orders', { key: 'k' })
          await door.reached
          const duplicate = await post('/orders', { key: 'k' })
          assertProblem(duplicate, 409, 'in-progress')
          assert.ok(Number(duplicate.header('Retry-After')) >= 1)
          assert.equal(duplicate.header('Latchkey-Retry'), 'later')
          door.open()
          assert.equal((await first.received).status, 201)
          assert.equal((await post('/orders', { key: 'k' })).header('Idempotent-Replayed'), 'true')
          assert.equal(count.runs, 1)
        },
      )
    },
  },
  {
    name: 'lets fifty callers wait for one execution, and gives them all its bytes',
    async run(harness) {
      const count = counted()
      const door = gate()
      await withApp(
        harness,
        latchkey => [
          route(latchkey.guarded('orders.create', { ...rerun, onInProgress: 'wait' }), waiting(door), { count }),
        ],
        async ({ post }) => {
          const callers = Array.from({ length: 50 }, () => post('/orders', { key: 'k', body: { sku: 1 } }))
          await door.reached
          await pause(100)
          door.open()
          const answers = await Promise.all(callers)
          assert.deepEqual(
            new Set(answers.map(one => `${one.status} ${one.body.toString()}`)),
            new Set(['201 {"order":1}']),
          )
          assert.equal(answers.filter(one => one.header('Idempotent-Replayed') === 'true').length, 49)
          assert.equal(count.runs, 1)
        },
      )
    },
  },
  {
    name: 'ends a wait at its limit with 409 and leaves the owner alone',
    async run(harness) {
      const door = gate()
      const options = { ...rerun, onInProgress: 'wait', waitMs: 100 } as const
      await withApp(
        harness,
        latchkey => [route(latchkey.guarded('orders.create', options), waiting(door))],
        async ({ open, post }) => {
          const first = open('/orders', { key: 'k' })
          await door.reached
          assertProblem(await post('/orders', { key: 'k' }), 409, 'in-progress')
          door.open()
          assert.equal((await first.received).status, 201)
        },
      )
    },
  },
  {
    name: 'answers 202 while the first runs where the operation chose that, and keeps no 202',
    async run(harness) {
      const door = gate()
      await withApp(
        harness,
        latchkey => [route(latchkey.guarded('orders.create', { ...rerun, onInProgress: 'accept' }), waiting(door))],
        async ({ open, post }) => {
          const first = open('/orders', { key: 'k' })
          await door.reached
          const duplicate = await post('/orders', { key: 'k' })
          assert.deepEqual([duplicate.status, duplicate.json()['state']], [202, 'in_progress'])
          assert.ok(Number(duplicate.header('Retry-After')) >= 1)
          door.open()
          assert.equal((await first.received).status, 201)
          assert.equal((await post('/orders', { key: 'k' })).status, 201)
        },
      )
    },
  },
  {
    name: 'has stored the outcome before the client sees the first byte',
    async run(harness) {
      const written = { complete: false }
      const store = slowToComplete(harness.memoryStore(), written)
      await withApp(
        harness,
        latchkey => [route(latchkey.guarded('orders.create', rerun), created(1))],
        async ({ post }) => {
          let atFirstByte: boolean | undefined
          await post('/orders', { key: 'k', onFirstByte: () => (atFirstByte = written.complete) })
          assert.equal(atFirstByte, true)
        },
        { store },
      )
    },
  },
]

/** Completing takes a while, so that a response sent too early is noticed. */
function slowToComplete(store: Store, written: { complete: boolean }): Store {
  return {
    ...store,
    async complete(claim, outcome, retentionMs) {
      await pause(150)
      const result = await store.complete(claim, outcome, retentionMs)
      written.complete = true
      return result
    },
  }
}
