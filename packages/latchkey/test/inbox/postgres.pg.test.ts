import { afterAll, beforeAll, expect, it } from 'vitest'
import pg from 'pg'
import { describePostgres } from '../../../../test/servers/describe-postgres.ts'
import { postgresStore } from '../../src/stores/postgres/index.ts'
import { inbox } from '../../src/inbox/index.ts'
import { type Ground, newConsumer, order, quiet } from './fixture.ts'
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

  it.each(['refuse', 'wait'] as const)(
    'takes a constraint that fails at the commit for a failure of the message, and not for an outage (%s)',
    async onInProgress => {
      await pool.query(`create table if not exists paid (label text unique deferrable initially deferred)`)
      await pool.query('insert into paid values ($1)', [onInProgress])
      const operation = quiet(ground.store).atomic('orders.pay', { onInProgress })
      const { receive } = inbox(operation, { consumer: newConsumer(), attemptsMax: 2 })
      const deliver = () =>
        receive(order('1'), ({ tx }) => (tx as pg.PoolClient).query('insert into paid values ($1)', [onInProgress]))
      expect(await deliver()).toMatchObject({ kind: 'retry', cause: 'failed' })
      expect(await deliver()).toMatchObject({ kind: 'parked', cause: 'attempts' })
      expect(await receive(order('2'), () => {})).toEqual({ kind: 'done' })
    },
  )
})
