/** What the store on PostgreSQL must do, with group commit and without. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import pg from 'pg'
import { runStoreCases, runUnreadableCases } from '@latchkey/conformance'
import { checkStoreModel } from '../properties/store-properties.ts'
import { postgresHarness } from './fixture.ts'
import { type Overloads, plantOverloads } from './overloads.ts'

export function itConforms(database: { readonly url: string }, batching: boolean): void {
  let pool: pg.Pool
  let overloads: Overloads | undefined
  beforeAll(async () => {
    pool = new pg.Pool({ connectionString: database.url, max: 30 })
    // The database is dropped by force when the suite ends, which the last idle connections may still live to see.
    pool.on('error', () => {})
    overloads = await plantOverloads(database.url, pool)
  })
  afterAll(async () => {
    await pool.end()
    await overloads?.drop()
  })

  runStoreCases(() => postgresHarness(pool, batching), it, { elsewhere: ['outbox'] })
  runUnreadableCases(() => postgresHarness(pool, batching), it)

  it(
    'agrees with the model, whatever callers do',
    () => checkStoreModel(() => postgresHarness(pool, batching), { numRuns: 20 }),
    300_000,
  )

  it('has called nothing in all of this that another role put into the schema public', () => {
    expect(overloads && [...overloads.called]).toEqual([])
    expect(overloads && [...overloads.unqualified]).toEqual([])
  })
}
