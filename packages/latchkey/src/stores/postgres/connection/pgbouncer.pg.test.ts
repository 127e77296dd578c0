import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import pg from 'pg'
import { describePgBouncer } from '../../../../../../test/servers/pgbouncer.ts'
import { checkStoreModel } from '../../../../test/properties/store-properties.ts'
import { postgresHarness } from '../../../../test/postgres/fixture.ts'
import { postgresStore } from '../index.ts'

describePgBouncer('the postgres store behind PgBouncer in transaction mode', database => {
  let pool: pg.Pool
  beforeAll(() => {
    pool = new pg.Pool({ connectionString: database.url, max: 30 })
    pool.on('error', () => {})
  })
  afterAll(() => pool.end())

  it('stands on sessions that are not its own, and leaves no prepared statement in them', async () => {
    const store = postgresStore({ pool })
    await store.migrate()
    const client = await pool.connect()
    // The type of `pg` does not tell of it.
    const { processID } = client as unknown as { readonly processID: number }
    expect((await client.query('select pg_backend_pid() as pid')).rows[0].pid).not.toBe(processID)
    client.release()
    const ids = Array.from({ length: 200 }, () => randomUUID())
    const claims = ids.map(id =>
      store.claim({
        identity: { id, scope: 's', operation: 'o' },
        claimId: randomUUID(),
        fingerprint: Buffer.from('f'),
        recovery: 'hold',
        leaseMs: 30_000,
        expiresInMs: 3_600_000,
        description: undefined,
      }),
    )
    expect((await Promise.all(claims)).every(({ kind }) => kind === 'won')).toBe(true)
    for (let session = 0; session < 10; session += 1) {
      expect((await pool.query('select name from pg_prepared_statements')).rows).toEqual([])
    }
  })

  it(
    'agrees with the model, whatever callers do',
    () => checkStoreModel(() => postgresHarness(pool), { numRuns: 10 }),
    300_000,
  )
})
