import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import pg from 'pg'
import { describePostgres } from '../../../../../../test/servers/describe-postgres.ts'
import { postgresMigrations, postgresStore } from '../index.ts'

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
      import { postgresStore } from ${JSON.stringify(new URL('../index.ts', import.meta.url).href)}
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

  it('leaves a database alone that a newer version has migrated and still shares with this one', async () => {
    const store = postgresStore({ pool, schema: 'newer' })
    await store.migrate()
    const known = postgresMigrations().length
    await pool.query(`insert into "newer".migrations (version, name, shared_from) values (99, 'of tomorrow', ${known})`)
    await store.migrate()
    expect(await store.check()).toEqual({ kind: 'fit' })
    expect((await applied('newer')).map(row => row.version)).toContain(99)
  })

  it.each([
    ['with nobody', 'null'],
    ['with later ones only', '98'],
  ])('refuses a database that a newer version has migrated and shares %s', async (which, sharedFrom) => {
    const schema = `newer ${which}`.replaceAll(' ', '-')
    await postgresStore({ pool, schema }).migrate()
    await pool.query(
      `insert into "${schema}".migrations (version, name, shared_from) values (99, 'of tomorrow', ${sharedFrom})`,
    )
    const store = postgresStore({ pool, schema })
    await expect(store.migrate()).rejects.toMatchObject({ code: 'store-newer', message: /step 99, "of tomorrow"/ })
    expect(await store.check()).toMatchObject({ kind: 'newer', message: /step 99, "of tomorrow"/ })
  })

  it.each([
    ['of another shape', 'create table s.migrations (id serial primary key, name text, run_on timestamptz)'],
    [
      'of the same shape, with other steps',
      `create table s.migrations (version integer primary key, name text, applied_at timestamptz default now());
       insert into s.migrations values (500, 'add-users'), (1, 'init')`,
    ],
    [
      'of the same shape, with a high number alone',
      `create table s.migrations (version integer primary key, name text, applied_at timestamptz default now());
       insert into s.migrations values (500, 'add-users')`,
    ],
    ['that is empty', 'create table s.migrations (version integer, name text, applied_at timestamptz)'],
    ['of keys alone', 'create table s.keys (id integer)'],
  ])('changes nothing in a schema that has somebody else’s table %s', async (which, text) => {
    const schema = `foreign ${which}`.replaceAll(/[ ,]+/g, '-')
    await pool.query(`create schema "${schema}"; ${text.replaceAll(' s.', ` "${schema}".`)}`)
    const store = postgresStore({ pool, schema })
    await expect(store.migrate()).rejects.toMatchObject({ code: 'store-foreign', message: /schema of its own/ })
    expect(await store.check()).toMatchObject({ kind: 'foreign', message: /schema of its own/ })
    const { rows } = await pool.query('select from pg_tables where schemaname = $1', [schema])
    expect(rows).toHaveLength(1)
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
    expect(await applied('given')).toHaveLength(postgresMigrations().length)
    await expect(postgresStore({ pool: limitedPool, schema: 'new-one' }).migrate()).rejects.toMatchObject({
      code: 'store-rights',
      message: new RegExp(`may not create schema "new-one": run grant create on database ".*" to "${role}"`),
    })
    await limitedPool.end()
    await pool.query(`drop schema given cascade; drop owned by ${role}; drop role ${role}`)
  })
})
