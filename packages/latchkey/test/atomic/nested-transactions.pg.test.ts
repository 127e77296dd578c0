import 'reflect-metadata'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/node-postgres'
import knexOver from 'knex'
import { Kysely, PostgresDialect } from 'kysely'
import type pg from 'pg'
import { DataSource } from 'typeorm'
import { describePostgres } from '../../../../test/servers/describe-postgres.ts'
import { engine } from '../../src/engine/internal.ts'
import type { AtomicOperation } from '../../src/engine/operation.ts'
import { answered, executeRequest, latchkeyOn, operationName, told } from '../engine/fixture.ts'
import { everything, nothing, postgresShop, type Shop } from './fixture.ts'
import { prismaOn } from './prisma-client.ts'

type Order = (sku: string) => Promise<unknown>

/** `nest` opens a transaction of the library's own on `tx`: it commits when `work` ends, and rolls back when that throws. */
interface Library {
  readonly name: string
  nest(tx: pg.PoolClient, work: (order: Order) => Promise<unknown>): Promise<unknown>
}

const insert = 'insert into orders values ($1)'
/** Libraries that want a pool get one that has this connection only. */
const poolOf = (tx: pg.PoolClient) => ({ connect: async () => tx, end: async () => {}, options: {} })

const libraries: readonly Library[] = [
  {
    name: 'pg',
    async nest(tx, work) {
      await tx.query('BEGIN')
      try {
        await work(sku => tx.query(insert, [sku]))
        await tx.query('COMMIT')
      } catch (error) {
        await tx.query('ROLLBACK')
        throw error
      }
    },
  },
  {
    name: 'Drizzle',
    nest: (tx, work) =>
      drizzle(tx).transaction(inner => work(async sku => await inner.execute(sql`insert into orders values (${sku})`))),
  },
  {
    name: 'Kysely',
    nest: (tx, work) =>
      new Kysely<{ orders: { sku: string } }>({ dialect: new PostgresDialect({ pool: poolOf(tx) }) })
        .transaction()
        .execute(inner => work(sku => inner.insertInto('orders').values({ sku }).execute())),
  },
  {
    name: 'Knex',
    nest: (tx, work) =>
      knexOver({ client: 'pg' }).transaction(inner => work(sku => inner('orders').insert({ sku })), { connection: tx }),
  },
  {
    name: 'TypeORM',
    async nest(tx, work) {
      const source = new DataSource({ type: 'postgres' })
      const runner = Object.assign(source.createQueryRunner(), { databaseConnection: tx })
      await source.createEntityManager(runner).transaction(inner => work(sku => inner.query(insert, [sku])))
      await runner.release()
    },
  },
  {
    name: 'Prisma',
    async nest(tx, work) {
      const prisma = prismaOn(tx)
      try {
        await prisma.$transaction(inner => work(sku => inner.$executeRawUnsafe(insert, sku)))
      } finally {
        await prisma.$disconnect()
      }
    },
  },
]

describePostgres('an atomic handler that calls code with a transaction of its own', database => {
  let shop: Shop & { pool: pg.Pool }
  let operation: AtomicOperation<unknown>
  beforeAll(async () => {
    shop = await postgresShop(database.url, { max: 2 })
    operation = latchkeyOn(shop.store).atomic(operationName)
  })
  afterAll(() => shop.close())

  const bug = new Error('a bug after the nested transaction')

  describe.each(libraries)('of $name', ({ name, nest }) => {
    const key = (of: string) => `${of} ${name}`
    const execute = (of: string, work: (tx: pg.PoolClient) => Promise<unknown>) =>
      operation[engine].execute(executeRequest(key(of)), async ({ tx }) => {
        await work(tx as pg.PoolClient)
        return answered(201)
      })

    it('commits it with the rest, once, however often it is asked for', async () => {
      const answers: string[] = []
      for (let times = 0; times < 3; times += 1) {
        const answer = await execute('commit', async tx => {
          await nest(tx, order => order(key('commit')))
          expect(await shop.committed(key('commit'))).toEqual(nothing)
        })
        answers.push(told(answer))
      }
      expect(answers).toEqual(['executed 201 yes', 'replayed 201', 'replayed 201'])
      expect(await shop.committed(key('commit'))).toEqual(everything)
    })

    it('rolls it back with the rest when the handler throws after it', async () => {
      const answer = await execute('undone', async tx => {
        await nest(tx, order => order(key('undone')))
        throw bug
      })
      expect(told(answer)).toBe('threw not-stored')
      expect(await shop.committed(key('undone'))).toEqual(nothing)
    })

    it('rolls back the nested one alone when that throws, also after an error of the database, and keeps what was before', async () => {
      const answer = await execute('inner', async tx => {
        await shop.order(tx, key('inner'))
        const thrown = nest(tx, async order => {
          await order(key('never'))
          throw bug
        })
        await expect(thrown).rejects.toThrow(bug.message)
        await expect(nest(tx, order => order(key('never')).then(() => tx.query('select 1/0')))).rejects.toThrow()
        await nest(tx, order => order(key('second')))
      })
      expect(told(answer)).toBe('executed 201 yes')
      expect(await shop.committed(key('inner'))).toEqual(everything)
      expect(await shop.committed(key('second'))).toMatchObject({ orders: 1 })
      expect(await shop.committed(key('never'))).toEqual(nothing)
    })

    it('leaves nothing behind on the pooled connection', async () => {
      const states: unknown[] = []
      const note = (client: pg.PoolClient) =>
        states.push([
          Object.keys(client),
          client.listenerCount('error'),
          client.connection.listenerCount('commandComplete'),
          client.connection.listenerCount('readyForQuery'),
        ])
      let handed: unknown
      shop.pool.on('acquire', note)
      await execute('traceless', async tx => {
        handed = tx
        await nest(tx, order => order(key('traceless')))
      })
      // The one that was given back last.
      const client = await shop.pool.connect()
      const commands = [(await client.query('BEGIN')).command, (await client.query('ROLLBACK')).command]
      client.release()
      shop.pool.off('acquire', note)
      expect(client).not.toBe(handed)
      expect(commands).toEqual(['BEGIN', 'ROLLBACK'])
      expect(states[1]).toEqual(states[0])
      expect(shop.pool.totalCount).toBe(shop.pool.idleCount)
    })
  })
})
