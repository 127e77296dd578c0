import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import pg from 'pg'
import { describePostgres } from '../../../../../test/servers/describe-postgres.ts'
import { postgresMigrations, postgresStore } from './index.ts'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../../../../..', import.meta.url))

describePostgres('migrating', database => {
  let pool: pg.Pool
  beforeAll(() => {
    pool = new pg.Pool({ connectionString: database.url, max: 5 })
    // The database is dropped by force when the suite ends, which the last idle connections may still live to see.
    pool.on('error', () => {})
  })
  afterAll(() => pool.end())

  const applied = async (schema: string) =>
    (await pool.query(`select version, name from "${schema}".migrations order by version`)).rows

  it('succeeds in ten processes at once, and runs each step once', async () => {
    // Several schemas, so that the processes meet for certain and not by luck.
    const schemas = Array.from({ length: 10 }, (_, index) => `ten-${index}`)
    const program = `
      import pg from 'pg'
      import { postgresStore } from ${JSON.stringify(new URL('index.ts', import.meta.url).href)}
      const pool = new pg.Pool({ connectionString: ${JSON.stringify(database.url)}, max: 1 })
      // All start at the same second, however long each took to load.
      await new Promise(resolve => setTimeout(resolve, Math.max(0, Number(process.argv[1]) - Date.now())))
      for (const schema of ${JSON.stringify(schemas)}) await postgresStore({ pool, schema }).migrate()
      await pool.end()`
    const startAtMs = String(Date.now() + 3_000)
    const args = ['--import', 'tsx', '--input-type=module', '--eval', program, startAtMs]
    await Promise.all(Array.from({ length: 10 }, () => run(process.execPath, args, { cwd: root })))
    const steps = postgresMigrations().map(({ version, name }) => ({ version, name }))
    for (const schema of schemas) expect(await applied(schema)).toEqual(steps)
  })

  it('succeeds for many at once where the database’s default is SERIALIZABLE', async () => {
    const options = '-c default_transaction_isolation=serializable'
    const strict = new pg.Pool({ connectionString: database.url, max: 5, options })
    strict.on('error', () => {})
    const store = postgresStore({ pool: strict, schema: 'strict' })
    await Promise.all(Array.from({ length: 5 }, () => store.migrate()))
    expect(await applied('strict')).toHaveLength(postgresMigrations().length)
    await strict.end()
  })

  it('does nothing the second time, and keeps what is there', async () => {
    const store = postgresStore({ pool, schema: 'twice' })
    await store.migrate()
    await pool.query(`insert into "twice".due values (gen_random_uuid(), 'x', now(), now(), now())`)
    await store.migrate()
    expect((await pool.query('select from "twice".due')).rowCount).toBe(1)
  })

  it('leaves a database alone that a newer version has migrated', async () => {
    const store = postgresStore({ pool, schema: 'newer' })
    await store.migrate()
    await pool.query(`insert into "newer".migrations values (99, 'of tomorrow')`)
    await store.migrate()
    expect((await applied('newer')).map(row => row.version)).toContain(99)
  })

  it('gives the same tables to those who run the statements themselves', async () => {
    for (const { sql } of postgresMigrations('by-hand')) await pool.query(sql)
    await postgresStore({ pool, schema: 'by-hand' }).migrate()
    await postgresStore({ pool, schema: 'by-us' }).migrate()
    const tables = async (schema: string) =>
      (
        await pool.query(
          `select table_name, column_name, data_type, collation_name from information_schema.columns
           where table_schema = $1 order by 1, 2`,
          [schema],
        )
      ).rows
    expect((await tables('by-hand')).length).toBeGreaterThan(40)
    expect(await tables('by-hand')).toEqual(await tables('by-us'))
  })

  it('needs no right to create schemas where the schema is there', async () => {
    const role = `r_${randomBytes(8).toString('hex')}`
    await pool.query(`create role ${role} login; create schema given authorization ${role}`)
    const limited = new URL(database.url)
    limited.username = role
    const limitedPool = new pg.Pool({ connectionString: limited.href, max: 1 })
    limitedPool.on('error', () => {})
    await postgresStore({ pool: limitedPool, schema: 'given' }).migrate()
    await limitedPool.end()
    expect(await applied('given')).toHaveLength(postgresMigrations().length)
    await pool.query(`drop schema given cascade; drop owned by ${role}; drop role ${role}`)
  })
})
