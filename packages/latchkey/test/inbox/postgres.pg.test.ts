import { afterAll, beforeAll } from 'vitest'
import pg from 'pg'
import { describePostgres } from '../../../../test/servers/describe-postgres.ts'
import { postgresStore } from '../../src/stores/postgres/index.ts'
import type { Ground } from './fixture.ts'
import { itReceives } from './receive.cases.ts'
import { itRedrives } from './redrive.cases.ts'

describePostgres('an inbox on PostgreSQL', database => {
  let pool: pg.Pool
  let ground: Ground
  beforeAll(async () => {
    pool = new pg.Pool({ connectionString: database.url, max: 8 })
    const store = postgresStore({ pool })
    await store.migrate()
    await pool.query('create table booked (label text not null)')
    ground = {
      store,
      // The store hands out clients of the pool.
      book: async (tx, label) => void (await (tx as pg.PoolClient).query('insert into booked values ($1)', [label])),
      booked: async label => (await pool.query('select from booked where label = $1', [label])).rowCount ?? 0,
    }
  })
  afterAll(() => pool.end())
  itReceives(() => ground)
  itRedrives(() => ground)
})
