import { afterAll, beforeAll, expect, it } from 'vitest'
import type pg from 'pg'
import { describePostgres } from '../../../../../test/servers/describe-postgres.ts'
import { createLatchkey, type Latchkey } from '../../../src/index.ts'
import { postgresStore, type PostgresStore } from '../../../src/stores/postgres/index.ts'
import { openProxiedPools, type ProxiedPools } from './proxied-pools.ts'

const together = 20

describePostgres('a batch whose connection breaks', database => {
  let pools: ProxiedPools
  let store: PostgresStore<pg.PoolClient>
  let latchkey: Latchkey<unknown, unknown>

  beforeAll(async () => {
    pools = await openProxiedPools(database.url)
    store = postgresStore({ pool: pools.wired })
    await store.migrate()
    latchkey = createLatchkey({ store, scope: () => 'acme' }) as Latchkey<unknown, unknown>
  })
  afterAll(async () => {
    await latchkey.close()
    await pools.close()
  })

  /** `lost`: which message of the batch. The word is in every claim, or in every answer, of this operation. */
  async function runAll(operation: string, { cutAt, lost }: { cutAt: string; lost: 'request' | 'reply' }) {
    const guarded = latchkey.guarded(operation, { onFailure: 'hold' })
    const calls = new Map<string, number>()
    const cut = pools.proxy.cutAt(cutAt, lost)
    const keys = Array.from({ length: together }, (_, index) => `${operation}-${index}`)
    const run = (key: string) =>
      guarded.run({ scope: 'acme', key, input: key }, async () => {
        calls.set(key, (calls.get(key) ?? 0) + 1)
        return `answer of ${key}`
      })
    const results = await Promise.allSettled(keys.map(run))
    await cut
    return { keys, run, calls, results }
  }

  const statesOf = async (operation: string) =>
    (
      await pools.outside.query<{ state: number; n: number }>(
        'select state, count(*)::int as n from latchkey.keys where operation = $1 group by state',
        [operation],
      )
    ).rows

  it('loses no claim when only the reply was lost: each member finds its own by its claim id, and runs once', async () => {
    const operation = 'claims-reply'
    const { keys, calls, results } = await runAll(operation, { cutAt: operation, lost: 'reply' })
    expect(results).toEqual(keys.map(key => ({ status: 'fulfilled', value: `answer of ${key}` })))
    expect([...calls.values()]).toEqual(keys.map(() => 1))
    expect(await statesOf(operation)).toEqual([{ state: 2, n: together }])
  })

  it('runs nothing whose claim never arrived, says so, and lets the retry run', async () => {
    const operation = 'claims-request'
    const { keys, run, calls, results } = await runAll(operation, { cutAt: operation, lost: 'request' })
    const refused = results.filter(({ status }) => status === 'rejected')
    expect(refused.length).toBeGreaterThan(0)
    for (const result of refused) expect(result).toMatchObject({ reason: { code: 'store-unavailable' } })
    expect(calls.size).toBe(together - refused.length)
    // Nothing was granted, so there is nothing to wait for.
    expect(await Promise.all(keys.map(run))).toEqual(keys.map(key => `answer of ${key}`))
    expect([...calls.values()]).toEqual(keys.map(() => 1))
  })

  it.each(['reply', 'request'] as const)('stores every answer once when a batch of them loses its %s', async lost => {
    const operation = `answers-${lost}`
    const { keys, run, calls, results } = await runAll(operation, { cutAt: `answer of ${operation}`, lost })
    expect(results).toEqual(keys.map(key => ({ status: 'fulfilled', value: `answer of ${key}` })))
    expect([...calls.values()]).toEqual(keys.map(() => 1))
    expect(await statesOf(operation)).toEqual([{ state: 2, n: together }])
    const evidence = await pools.outside.query(
      'select from latchkey.evidence e join latchkey.keys k on k.id = e.key_id where k.operation = $1',
      [operation],
    )
    expect(evidence.rowCount).toBe(0)
    // Replayed, not run again.
    expect(await Promise.all(keys.map(run))).toEqual(keys.map(key => `answer of ${key}`))
    expect([...calls.values()]).toEqual(keys.map(() => 1))
  })
})
