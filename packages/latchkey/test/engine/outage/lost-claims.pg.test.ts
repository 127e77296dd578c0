import { afterAll, beforeAll, expect, it } from 'vitest'
import type pg from 'pg'
import { describePostgres } from '../../../../../test/servers/describe-postgres.ts'
import { createLatchkey, type Latchkey } from '../../../src/index.ts'
import { postgresStore, type PostgresStore } from '../../../src/stores/postgres/index.ts'
import { eventually } from '../fixture.ts'
import { openProxiedPools, type ProxiedPools } from './proxied-pools.ts'

const together = 1_500
/** A busy machine takes its time for fifteen hundred of anything. */
const limitMs = 240_000

describePostgres('fifteen hundred claims whose replies are lost together', database => {
  let pools: ProxiedPools
  let beside: PostgresStore<pg.PoolClient>
  let latchkey: Latchkey<unknown, unknown>

  beforeAll(async () => {
    pools = await openProxiedPools(database.url)
    beside = postgresStore({ pool: pools.outside })
    await beside.migrate()
    const store = postgresStore({ pool: pools.wired, batching: { sizeMax: together } })
    latchkey = createLatchkey({ store, scope: () => 'acme' }) as Latchkey<unknown, unknown>
  })
  afterAll(async () => {
    pools.proxy.mend()
    await latchkey.close()
    await pools.close()
  })

  const states = { in_progress: 1, completed: 2, failed_retryable: 3, unknown: 4 } as const
  const rowsIn = async (operation: string, state: keyof typeof states) => {
    const text = 'select count(*)::int as n from latchkey.keys where operation = $1 and state = $2'
    const { rows } = await pools.outside.query<{ n: number }>(text, [operation, states[state]])
    return rows[0]?.n
  }

  it.each([
    ['still in progress', 'in_progress', 600_000],
    ['swept to unknown meanwhile', 'unknown', 500],
  ] as const)(
    'are released once the store is back, %s, and each key runs once',
    async (_, state, leaseMs) => {
      const guarded = latchkey.guarded(`lost.${state}`, { onFailure: 'hold', leaseMs })
      const calls = new Map<string, number>()
      const keys = Array.from({ length: together }, (__, n) => `key ${n}`)
      const run = (key: string) =>
        guarded.run({ scope: 'acme', key, input: key }, () => {
          calls.set(key, (calls.get(key) ?? 0) + 1)
          return key
        })

      pools.proxy.muteAt(guarded.name)
      const refused = Promise.allSettled(keys.map(run))
      await eventually(async () => (await rowsIn(guarded.name, 'in_progress')) === together, limitMs)
      // Before their callers are answered: from then on the process tries to release them, and its requests do arrive.
      if (state === 'unknown') {
        const sweepAll = async () => (await beside.sweep({ limit: together })).length
        await eventually(
          async () => (await sweepAll()) === 0 && (await rowsIn(guarded.name, 'unknown')) === together,
          limitMs,
        )
      }
      expect(await rowsIn(guarded.name, state)).toBe(together)
      for (const result of await refused) expect(result).toMatchObject({ reason: { code: 'store-unavailable' } })
      expect(calls.size).toBe(0)

      pools.proxy.mend()
      await eventually(async () => (await rowsIn(guarded.name, 'failed_retryable')) === together, limitMs)
      // As clients do: a few at a time, and again after a 503 or a 409.
      const retry = (key: string) => eventually(async () => (await run(key).catch(() => undefined)) === key)
      for (let first = 0; first < together; first += 50) await Promise.all(keys.slice(first, first + 50).map(retry))
      expect([...calls]).toHaveLength(together)
      expect(new Set(calls.values())).toEqual(new Set([1]))
      expect(await rowsIn(guarded.name, 'completed')).toBe(together)
    },
    4 * limitMs,
  )
})
