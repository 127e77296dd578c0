/** Each library's own transaction: what is handed in as `tx`, and a way to write in it. */
import 'reflect-metadata'
import { MikroORM } from '@mikro-orm/postgresql'
import { PrismaPg } from '@prisma/adapter-pg'
import { sql as raw } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/node-postgres'
import { drizzle as drizzleOnPostgresJs } from 'drizzle-orm/postgres-js'
import createKnex from 'knex'
import { Kysely, PostgresDialect, sql as kyselySql } from 'kysely'
import pg from 'pg'
import postgres from 'postgres'
import { DataSource } from 'typeorm'
import { PrismaClient } from '../generated/client.ts'

export interface OpenTransaction {
  readonly tx: unknown
  /** A statement without parameters, in this transaction. */
  send(text: string): PromiseLike<unknown>
}

/** Commits when the work ends, and rolls back when it throws. */
export type Transact = <T>(work: (open: OpenTransaction) => Promise<T>) => Promise<T>

export interface Library {
  readonly name: string
  readonly transact: Transact
  /** The same with one nested transaction, which is the one that is handed in. */
  readonly nested?: Transact
}

export interface Libraries {
  readonly all: readonly Library[]
  readonly pool: pg.Pool
  readonly sql: postgres.Sql
  readonly kysely: Kysely<unknown>
  readonly knex: ReturnType<typeof createKnex>
  readonly dataSource: DataSource
  readonly orm: MikroORM
  readonly prisma: PrismaClient
  close(): Promise<void>
}

export async function openLibraries(url: string): Promise<Libraries> {
  const pool = new pg.Pool({ connectionString: url, max: 4 })
  pool.on('error', () => {})
  const sql = postgres(url, { max: 2, transform: postgres.camel })
  const kysely = new Kysely<unknown>({ dialect: new PostgresDialect({ pool }) })
  const knex = createKnex({ client: 'pg', connection: url })
  const dataSource = await new DataSource({ type: 'postgres', url }).initialize()
  const orm = await MikroORM.init({ clientUrl: url, entities: [], discovery: { warnWhenNoEntities: false } })
  const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: url }) })
  const opened = { pool, sql, kysely, knex, dataSource, orm, prisma }
  const all = [...onDrivers(opened), ...onBuilders(opened), ...onOrms(opened)]
  const close = async () => {
    await Promise.all([sql.end(), knex.destroy(), dataSource.destroy(), orm.close(), prisma.$disconnect()])
    await pool.end()
  }
  return { all, ...opened, close }
}

type Opened = Omit<Libraries, 'all' | 'close'>

function onDrivers({ pool, sql }: Opened): Library[] {
  const db = drizzle(pool)
  const other = drizzleOnPostgresJs(sql)
  return [
    {
      name: 'pg',
      async transact(work) {
        const client = await pool.connect()
        try {
          await client.query('begin')
          const value = await work({ tx: client, send: text => client.query(text) })
          await client.query('commit')
          return value
        } catch (error) {
          await client.query('rollback')
          throw error
        } finally {
          client.release()
        }
      },
    },
    {
      name: 'postgres.js',
      // A list that the work returned would be awaited one by one, which its type says.
      transact: async work => (await sql.begin(tx => work({ tx, send: text => tx.unsafe(text) }))) as never,
      nested: async work =>
        (await sql.begin(tx => tx.savepoint(inner => work({ tx: inner, send: text => inner.unsafe(text) })))) as never,
    },
    {
      name: 'Drizzle on pg',
      transact: work => db.transaction(tx => work({ tx, send: text => tx.execute(raw.raw(text)) })),
      nested: work =>
        db.transaction(tx => tx.transaction(inner => work({ tx: inner, send: text => inner.execute(raw.raw(text)) }))),
    },
    {
      name: 'Drizzle on postgres.js',
      transact: work => other.transaction(tx => work({ tx, send: text => tx.execute(raw.raw(text)) })),
      nested: work =>
        other.transaction(tx =>
          tx.transaction(inner => work({ tx: inner, send: text => inner.execute(raw.raw(text)) })),
        ),
    },
  ]
}

function onBuilders({ kysely, knex }: Opened): Library[] {
  return [
    {
      name: 'Kysely',
      transact: work => kysely.transaction().execute(tx => work({ tx, send: text => kyselySql.raw(text).execute(tx) })),
    },
    {
      name: 'Knex',
      transact: work =>
        knex.transaction(async trx => work({ tx: await trx.client.acquireConnection(), send: text => trx.raw(text) })),
      nested: work =>
        knex.transaction(trx =>
          trx.transaction(async inner =>
            work({ tx: await inner.client.acquireConnection(), send: text => inner.raw(text) }),
          ),
        ),
    },
  ]
}

function onOrms({ dataSource, orm, prisma }: Opened): Library[] {
  return [
    {
      name: 'TypeORM',
      transact: work =>
        dataSource.transaction(async manager =>
          work({ tx: await manager.queryRunner?.connect(), send: text => manager.query(text) }),
        ),
      nested: work =>
        dataSource.transaction(manager =>
          manager.transaction(async inner =>
            work({ tx: await inner.queryRunner?.connect(), send: text => inner.query(text) }),
          ),
        ),
    },
    {
      name: 'MikroORM',
      transact: work =>
        orm.em.fork().transactional(em => work({ tx: em.getTransactionContext(), send: text => em.execute(text) })),
      nested: work =>
        orm.em
          .fork()
          .transactional(em =>
            em.transactional(inner => work({ tx: inner.getTransactionContext(), send: text => inner.execute(text) })),
          ),
    },
    {
      name: 'Prisma',
      transact: work => prisma.$transaction(tx => work({ tx, send: text => tx.$executeRawUnsafe(text) })),
      nested: work =>
        prisma.$transaction(tx =>
          tx.$transaction(inner => work({ tx: inner, send: text => inner.$executeRawUnsafe(text) })),
        ),
    },
  ]
}
