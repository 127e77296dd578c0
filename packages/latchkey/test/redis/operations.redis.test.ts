/** Operations of every kind that Redis carries, through the engine. */
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import type { Redis } from 'ioredis'
import { createLatchkey, isLatchkeyError, json, type LatchkeyWithoutTransactions } from 'latchkey'
import { createWorkers } from 'latchkey/workers'
import { describeRedis } from '../../../../test/servers/redis/describe-redis.ts'
import { engine } from '../../src/engine/internal.ts'
import { silentTelemetry } from '../../src/ports/telemetry.ts'
import type { RedisStore } from '../../src/stores/redis/index.ts'
import { clientKinds, type OpenClient, openIoredis } from './clients.ts'
import { redisHarness, type RedisHarness } from './fixture.ts'

const once = { timeoutMs: 1_000 } as const
const act = { by: 'a test', reason: 'the provider was asked' } as const

for (const kind of clientKinds) {
  describeRedis(`operations on Redis, by ${kind.name}`, own => {
    let opened: OpenClient
    let outside: OpenClient & { readonly client: Redis }
    let harness: RedisHarness
    let store: RedisStore
    let latchkey: LatchkeyWithoutTransactions<unknown>

    beforeAll(async () => {
      opened = await kind.open(own.server.url)
      outside = await openIoredis(own.server.url)
    })
    afterAll(() => Promise.all([opened, outside].map(each => each.close())))
    beforeEach(async () => {
      harness = redisHarness(opened.client, outside.client)
      store = await harness.open()
      latchkey = createLatchkey({ store, scope: () => 'acme', telemetry: silentTelemetry, storeTimeoutMs: 10_000 })
    })

    it('runs a guarded operation once, replays it, and refuses another input under its key', async () => {
      let runs = 0
      const pay = latchkey.guarded('payments.create', { onFailure: 'hold' })
      const run = (amount: number) =>
        pay.run({ scope: 'acme', key: 'k', input: { amount } }, async () => ({ charged: amount, run: (runs += 1) }))
      const fifty = await Promise.allSettled(Array.from({ length: 50 }, () => run(7)))
      expect(fifty.filter(({ status }) => status === 'fulfilled').length).toBeGreaterThan(0)
      expect(await run(7)).toEqual({ charged: 7, run: 1 })
      await expect(run(8)).rejects.toSatisfy(error => isLatchkeyError(error, 'key-reused'))
      expect(runs).toBe(1)
    })

    it('refuses an atomic operation, and says what to use instead', () => {
      // As plain JavaScript, which has no types, calls it.
      const untyped = createLatchkey<unknown, unknown>({ store, scope: () => 'acme', telemetry: silentTelemetry })
      const declare = () => untyped.atomic('orders.create')
      expect(declare).toThrow(
        /the redis store has no transactions .* Use guarded, phased, or deferred, or postgresStore/,
      )
    })

    it('resumes phased work after its last recorded effect', async () => {
      const calls: string[] = []
      let broken = true
      const pay = latchkey.phased<{ amount: number }>(
        'payments.create',
        { version: 1, steps: 'effects' },
        async (x, { amount }) => {
          const charge = await x.effect('charge', once, async () => (calls.push('charge'), `ch_${amount}`))
          if (broken) throw new Error('out of paper')
          const mail = await x.effect('mail', once, async () => (calls.push('mail'), 'sent'))
          return json(201, { charge, mail })
        },
      )
      const request = { scope: 'acme', key: 'k', input: { amount: 7 } }
      await expect(pay.run(request)).rejects.toThrow('out of paper')
      broken = false
      await harness.advance(3_600_000)
      const [found] = await store.resumable({ limit: 10 })
      expect(found && (await pay[engine].resume(found))).toBe('completed')
      expect(await pay.run(request)).toMatchObject({ status: 201, value: { charge: 'ch_7', mail: 'sent' } })
      expect(calls).toEqual(['charge', 'mail'])
    })

    it('holds an effect in doubt, and continues with the value that a person gives', async () => {
      let calls = 0
      const pay = latchkey.phased('payments.create', { version: 1, steps: 'effects' }, async x => {
        const charge = await x.effect('charge', once, async () => {
          calls += 1
          throw new Error('socket hang up')
        })
        return json(201, { charge })
      })
      const request = { scope: 'acme', key: 'k', input: {} }
      const row = { scope: 'acme', operation: 'payments.create', key: 'k' }
      await expect(pay.run(request)).rejects.toSatisfy(error => isLatchkeyError(error, 'outcome-unknown'))
      expect(await latchkey.settle(row, { kind: 'happened', value: 'ch_1' }, act)).toEqual({ kind: 'settled' })
      expect(await pay.run(request)).toMatchObject({ value: { charge: 'ch_1' } })
      expect(calls).toBe(1)
    })

    it('accepts deferred work, and a worker runs it once', async () => {
      let runs = 0
      const report = latchkey.deferred<{ label: string }>(
        'exports.create',
        { deadlineMs: 3_600_000, steps: 'effects' },
        async (_x, { label }) => json(201, { label, run: (runs += 1) }),
      )
      const ask = () => report.run({ scope: 'acme', key: 'k', input: { label: 'a' } })
      expect(await ask()).toMatchObject({ kind: 'accepted' })
      const workers = createWorkers(latchkey, { resumer: { everyMs: 20 } })
      workers.start()
      await expect.poll(ask, { timeout: 10_000 }).toMatchObject({ kind: 'done', value: { label: 'a', run: 1 } })
      await workers.stop()
      expect(runs).toBe(1)
    })
  })
}
