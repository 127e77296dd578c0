import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { drizzle } from 'drizzle-orm/node-postgres'
import { drizzle as drizzleOnPostgresJs } from 'drizzle-orm/postgres-js'
import { createLatchkey, type Latchkey, singleTenant } from 'latchkey'
import { postgresStore } from 'latchkey/stores/postgres'
import type { PgPool } from 'latchkey/stores/postgres'
import type { PoolClient } from 'pg'
import { describePostgres } from '../../../test/servers/describe-postgres.ts'
import { type Libraries, openLibraries } from './libraries.ts'
import { createTables } from './tables.ts'

/** Each with its name in the error, and the line to write in place of it: as tx, and for the store. */
type Wrong = readonly [name: string, tx: string, store: string]

const ownPool = 'new Pool({ connectionString })'
const wrongs: Readonly<Record<string, Wrong>> = {
  pool: ['a connection pool of pg', 'const client = await pool.connect()', 'postgresStore({ pool })'],
  client: ['a client of pg', "await client.query('begin')", 'pool: new Pool({ … })'],
  sql: ['the sql of postgres.js', 'sql.begin(tx =>', 'postgresStore({ sql })'],
  drizzle: ['a Drizzle database', 'db.transaction(tx =>', 'pool: db.$client'],
  drizzleOnPostgresJs: ['a Drizzle database', 'db.transaction(tx =>', 'sql: db.$client'],
  kysely: ['a Kysely database', 'db.transaction().execute(tx =>', 'PostgresDialect'],
  knex: ['a Knex instance', 'await trx.client.acquireConnection()', ownPool],
  dataSource: ['a TypeORM DataSource', 'await manager.queryRunner.connect()', ownPool],
  manager: ['a TypeORM EntityManager', 'await manager.queryRunner.connect()', ownPool],
  queryRunner: ['a TypeORM QueryRunner', 'await queryRunner.connect()', ownPool],
  em: ['a MikroORM EntityManager', 'em.getTransactionContext()', ownPool],
  orm: ['a MikroORM instance', 'em.getTransactionContext()', ownPool],
  prisma: ['a PrismaClient', 'prisma.$transaction(tx =>', 'PrismaPg'],
  promise: ['a promise', 'await it', 'await it'],
}

describePostgres('an object that is not what is needed', database => {
  let libraries: Libraries
  let latchkey: Latchkey<PoolClient, unknown>
  let client: PoolClient
  let objects: Readonly<Record<string, unknown>>
  beforeAll(async () => {
    libraries = await openLibraries(database.url)
    const { pool, sql, kysely, knex, dataSource, orm, prisma } = libraries
    const store = postgresStore({ pool })
    await store.migrate()
    await createTables(pool)
    latchkey = createLatchkey({ store, scope: singleTenant })
    client = await pool.connect()
    objects = {
      ...{ pool, client, sql, kysely, knex, dataSource, orm, prisma },
      drizzle: drizzle(pool),
      drizzleOnPostgresJs: drizzleOnPostgresJs(sql),
      manager: dataSource.manager,
      queryRunner: dataSource.createQueryRunner(),
      em: orm.em.fork(),
      promise: pool.query('select 1'),
    }
  })
  afterAll(async () => {
    client.release()
    await libraries.close()
  })

  let keys = 0
  const run = (request: object) => {
    keys += 1
    const key = `key-${keys}`
    return latchkey
      .atomic('orders.create')
      .run({ scope: singleTenant(), key, input: null, ...request }, async () => 'ran')
      .catch((error: unknown) => error)
  }
  const named = (...parts: readonly string[]) => ({
    message: expect.stringMatching(
      new RegExp(parts.map(part => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('.*')),
    ),
  })

  describe.each(Object.entries(wrongs))('%s', (member, [name, tx, store]) => {
    it('is named when it is handed in as tx, with the line to write', async () => {
      expect(await run({ tx: objects[member] })).toMatchObject({ code: 'not-a-transaction', ...named(name, tx) })
    })

    it('is named when the store gets it as its pool, or as its options', () => {
      const wrong = objects[member]
      // As JavaScript hands them in. A pool is right as a pool.
      const given = member === 'pool' ? [wrong] : [wrong, { pool: wrong }]
      for (const options of given as readonly { readonly pool: PgPool }[])
        expect(errorOf(() => postgresStore(options))).toMatchObject({ code: 'misconfigured', ...named(name, store) })
    })
  })

  it('is named inside a transaction, where its own query would work', async () => {
    const { dataSource, orm, knex } = libraries
    await dataSource.transaction(async manager => {
      expect(await run({ tx: manager })).toMatchObject(named('a TypeORM EntityManager', 'queryRunner.connect()'))
      expect(await run({ tx: manager.queryRunner })).toMatchObject(named('a TypeORM QueryRunner', 'connect()'))
    })
    await orm.em.fork().transactional(async em => {
      expect(await run({ tx: em })).toMatchObject(named('a MikroORM EntityManager', 'em.getTransactionContext()'))
    })
    await knex.transaction(async trx => {
      expect(await run({ tx: trx })).toMatchObject(named('a Knex transaction', 'trx.client.acquireConnection()'))
    })
  })

  it('is named by its value when it is nothing that is known', async () => {
    for (const [tx, shown] of [
      [null, 'null'],
      ['order-7', "'order-7'"],
      [{}, 'an object'],
      [() => {}, 'a function'],
    ] as const)
      expect(await run({ tx })).toMatchObject({
        code: 'not-a-transaction',
        ...named(`${shown} is not a transaction`, 'after BEGIN'),
      })
    expect(await run({ tx: undefined })).toMatchObject({
      code: 'not-a-transaction',
      ...named('tx: undefined', 'leave tx out'),
    })
  })

  it('is asked for when the store gets nothing, both, or something else', () => {
    const { pool, sql } = libraries
    const needs = 'postgresStore needs { pool: new Pool({ … }) } of pg, or { sql: postgres(…) } of postgres.js'
    for (const options of [{}, undefined, null, 'postgres://localhost', { schema: 'keys' }, { pool: undefined }])
      expect(errorOf(() => postgresStore(options as never))).toMatchObject({ code: 'misconfigured', ...named(needs) })
    for (const [options, message] of [
      [{ pool, sql }, 'a pool and a sql'],
      [{ pool: 'postgres://localhost' }, "pool must be a pool of pg with connect, query (got 'postgres://localhost')"],
      [{ sql: pool }, 'sql is a connection pool of pg: write postgresStore({ pool })'],
      [{ sql: 'postgres://localhost' }, 'sql must be what postgres(…) of postgres.js returns'],
      [{ pool, shema: 'keys' }, 'did you mean schema?'],
    ] as const)
      expect(errorOf(() => postgresStore(options as never))).toMatchObject({ code: 'misconfigured', ...named(message) })
  })
})

function errorOf(call: () => unknown): unknown {
  try {
    return call()
  } catch (error) {
    return error
  }
}
