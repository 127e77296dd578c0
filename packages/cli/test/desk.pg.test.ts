import pg from 'pg'
import { afterAll, beforeAll } from 'vitest'
import { postgresStore } from 'latchkey/stores/postgres'
import { describePostgres } from '../../../test/servers/describe-postgres.ts'
import { actCases } from './act.cases.ts'
import { deskOf } from './desk.ts'
import { lookCases } from './look.cases.ts'
import { useProgram } from './program.ts'
import { openShop, type Shop } from './shop.ts'

describePostgres('the commands on PostgreSQL', database => {
  const program = useProgram()
  let pool: pg.Pool
  let shop: Shop

  beforeAll(async () => {
    pool = new pg.Pool({ connectionString: database.url, max: 5 })
    pool.on('error', () => {})
    const store = postgresStore({ pool })
    await store.migrate()
    shop = openShop(store)
  })
  afterAll(() => pool.end())

  const desk = deskOf(program, () => ({
    env: { DATABASE_URL: database.url },
    shop,
    age: async ms =>
      void (await pool.query(`update latchkey.due set since = since - $1 * interval '1 millisecond'`, [ms])),
  }))
  lookCases(desk)
  actCases(desk)
})
