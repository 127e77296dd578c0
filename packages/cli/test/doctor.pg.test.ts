import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createLatchkey, json, singleTenant } from 'latchkey'
import { postgresMigrations, postgresStore } from 'latchkey/stores/postgres'
import { createWorkers } from 'latchkey/workers'
import { describePostgres } from '../../../test/servers/describe-postgres.ts'
import { describePgBouncer } from '../../../test/servers/pgbouncer.ts'
import { horizonCheck } from '../src/doctor/postgres/horizon.ts'
import { expectedObjects } from '../src/doctor/postgres/expected.ts'
import { readObjects } from '../src/doctor/postgres/objects.ts'
import { migrateCases } from './migrate.cases.ts'
import { useProgram } from './program.ts'
import { openShop } from './shop.ts'

/** Within 30 s, however busy the machine is. */
async function until(isSo: () => Promise<boolean>): Promise<void> {
  for (let turn = 0; turn < 300; turn += 1) {
    if (await isSo()) return
    await new Promise(resolve => setTimeout(resolve, 100))
  }
  throw new Error('it did not become so')
}

interface Found {
  readonly check: string
  readonly verdict: string
  readonly text: string
  readonly cure?: string
  readonly sql?: readonly string[]
}

describePostgres('migrate on PostgreSQL', database => {
  migrateCases(useProgram(), () => ({ env: { DATABASE_URL: database.url } }))
})

describePostgres('doctor on PostgreSQL', database => {
  const program = useProgram()
  let pool: pg.Pool
  beforeAll(() => {
    pool = new pg.Pool({ connectionString: database.url, max: 5 })
    pool.on('error', () => {})
  })
  afterAll(() => pool.end())

  const migrated = async (schema: string) => {
    await postgresStore({ pool, schema }).migrate()
    return schema
  }
  const doctor = async (schema: string, { url = database.url, node = [] as string[] } = {}) => {
    const { code, stdout, stderr } = await program.run(['doctor', '--schema', schema, '--json'], {
      env: { DATABASE_URL: url },
      node,
    })
    if (stdout === '') throw new Error(stderr)
    const found = JSON.parse(stdout) as Found[]
    return { code, found, failed: found.filter(({ verdict }) => verdict === 'FAIL') }
  }

  it('knows what the steps make', async () => {
    const found = await readObjects(pool, await migrated('latchkey'))
    const text = `${JSON.stringify(found, null, 2)}\n`
    // After a new step: npm test -- packages/cli/test/doctor.pg.test.ts -u
    await expect(text).toMatchFileSnapshot(join(import.meta.dirname, '../src/doctor/postgres/expected.json'))
    expect(expectedObjects.filter(({ kind }) => kind === 'index').length).toBeGreaterThan(15)
  })

  it('finds nothing wrong with the schema of a database that was only migrated, whatever its name', async () => {
    const { found } = await doctor(await migrated('My-own-schema'))
    expect(found.filter(({ check }) => ['schema', 'store', 'rights', 'pooler', 'clock'].includes(check))).toMatchObject(
      Array.from({ length: 5 }, () => ({ verdict: 'ok' })),
    )
  })

  it.each([
    ['an index', 'drop index "SCHEMA".keys_scope', 'the index keys.keys_scope is missing'],
    ['an index on an expression', 'drop index "SCHEMA".keys_expires_at', 'the index keys.keys_expires_at is missing'],
    [
      'a constraint',
      'alter table "SCHEMA".audit_sink drop constraint audit_sink_is_one',
      'constraint audit_sink.audit_sink_is_one is missing',
    ],
    ['a function', 'drop function "SCHEMA".outbox_next_9', 'the function outbox_next_9 is missing'],
    ['a column', 'alter table "SCHEMA".keys drop column description', 'the column keys.description is missing'],
    ['a table', 'drop table "SCHEMA".received', 'the table received is missing'],
  ])('names %s that somebody dropped, and prints what repairs it', async (what, drop, text) => {
    const schema = await migrated(`without-${what.replaceAll(' ', '-')}`)
    await pool.query(drop.replaceAll('SCHEMA', schema))
    const sick = await doctor(schema)
    expect(sick.code).toBe(1)
    const found = sick.failed.filter(({ check }) => check === 'schema')
    expect(found.map(each => each.text)).toContainEqual(expect.stringContaining(text))
    const repair = await program.run(['doctor', '--schema', schema, '--fix-sql'], {
      env: { DATABASE_URL: database.url },
    })
    expect(repair.code).toBe(1)
    for (const statement of found.flatMap(({ sql = [] }) => sql)) {
      expect(repair.stdout).toContain(statement)
      await pool.query(statement)
    }
    expect((await doctor(schema)).failed.filter(({ check }) => check === 'schema')).toEqual([])
  })

  it('names a function that somebody replaced', async () => {
    const schema = await migrated('replaced')
    await pool.query(`alter function "replaced".outbox_next_9 cost 7`)
    const { failed } = await doctor(schema)
    expect(failed.map(({ text }) => text)).toContainEqual(
      expect.stringContaining('the function outbox_next_9 was changed'),
    )
  })

  it('sends a database that was never migrated to migrate', async () => {
    const { code, failed } = await doctor('nobody')
    expect(code).toBe(1)
    expect(failed).toContainEqual(
      expect.objectContaining({ check: 'store', cure: expect.stringContaining('latchkey migrate') }),
    )
  })

  it('says how many steps behind one is', async () => {
    await pool.query('create schema behind')
    for (const { sql } of postgresMigrations('behind').slice(0, 5)) await pool.query(sql)
    expect((await doctor('behind')).failed).toContainEqual(
      expect.objectContaining({ check: 'store', text: expect.stringContaining('its last step is 5') }),
    )
  })

  it('names the rights that a role lacks, and the grants give them', async () => {
    const schema = await migrated('rights')
    const role = `r_${randomBytes(6).toString('hex')}`
    await pool.query(`create role ${role} login; grant usage on schema rights to ${role};
      grant select, insert, update, delete on all tables in schema rights to ${role};
      revoke delete on rights.due from ${role}; revoke insert, update on rights.steps from ${role}`)
    const url = new URL(database.url)
    url.username = role
    const sick = await doctor(schema, { url: url.href })
    expect(sick.code).toBe(1)
    const found = sick.failed.filter(({ check }) => check === 'rights')
    expect(found.map(({ text }) => text).toSorted()).toEqual([
      `the role ${role} may not delete on due`,
      `the role ${role} may not insert, update on steps`,
    ])
    for (const statement of found.flatMap(({ sql = [] }) => sql)) await pool.query(statement)
    expect((await doctor(schema, { url: url.href })).failed.filter(({ check }) => check === 'rights')).toEqual([])
    await pool.query(`drop owned by ${role}; drop role ${role}`)
  })

  it('notices a clock that is an hour wrong', async () => {
    program.write('an-hour-late.mjs', 'const now = Date.now.bind(Date)\nDate.now = () => now() - 3_600_000\n')
    const late = ['--import', join(program.folder, 'an-hour-late.mjs')]
    const { code, failed } = await doctor(await migrated('clock'), { node: late })
    expect(code).toBe(1)
    expect(failed).toContainEqual(
      expect.objectContaining({
        check: 'clock',
        text: expect.stringMatching(/3\d{3} s behind the server/),
        cure: expect.stringContaining('time server'),
      }),
    )
  })

  it('notices that commits do not wait for the disk', async () => {
    const { found, code } = await doctor(await migrated('durable'), {
      url: `${database.url}?options=-c%20synchronous_commit%3Doff`,
    })
    expect(code).toBe(1)
    expect(found).toContainEqual(
      expect.objectContaining({
        check: 'durability',
        verdict: 'FAIL',
        text: expect.stringContaining('synchronous_commit is off'),
      }),
    )
  })

  it('says that no workers run, what that costs, and how to start them', async () => {
    const { code, failed } = await doctor(await migrated('idle'))
    expect(code).toBe(1)
    const found = failed.filter(({ check }) => check === 'workers')
    expect(found.map(({ text }) => text)).toEqual([
      'the sweeper is not running anywhere: rows of dead processes stay as they are',
      'the reaper is not running anywhere: expired rows are never deleted',
    ])
    expect(found[0]?.cure).toContain('latchkey work')
  })

  it('finds the workers that run, and misses those that something waits for', async () => {
    const store = postgresStore({ pool, schema: await migrated('busy') })
    const shop = openShop(store)
    const workers = createWorkers(shop.latchkey, { only: ['sweeper', 'reaper'] })
    workers.start()
    await until(async () => (await store.admin.workers()).length === 2)
    expect((await doctor('busy')).found).toContainEqual(
      expect.objectContaining({ check: 'workers', verdict: 'ok', text: 'reaper, sweeper in 1 processes' }),
    )
    const id = await shop.unknownPayment('resumable')
    const verdict = { kind: 'happened', value: { id: 'ch_1' } } as const
    await shop.latchkey.settle({ id }, verdict, { by: 'kim', reason: 'seen' })
    expect((await doctor('busy')).failed).toContainEqual(
      expect.objectContaining({
        check: 'workers',
        text: expect.stringContaining('the resumer is not running anywhere'),
      }),
    )
    await workers.drain()
  })

  it('warns of keys that are forgotten before their provider forgets them', async () => {
    const store = postgresStore({ pool, schema: await migrated('short') })
    const latchkey = createLatchkey({ store, scope: singleTenant, maintenance: false })
    const pay = latchkey.phased(
      'payments.create',
      { version: 1, retentionMs: 3_600_000 },
      async (x, _input: number) => {
        const charge = { dedup: { windowMs: 86_400_000 }, timeoutMs: 1_000 }
        return json(
          201,
          await x.effect('charge', charge, async (): Promise<{ id: string }> => {
            throw new Error('no answer')
          }),
        )
      },
    )
    await pay.run({ scope: 'acme', key: 'one', input: 1 }).catch(() => undefined)
    expect((await doctor('short')).found).toContainEqual(
      expect.objectContaining({
        check: 'retention',
        verdict: 'warn',
        text: expect.stringMatching(/payments\.create .*charge recognises its own for 1d/),
      }),
    )
  })

  it('names operations that have rows and no code', async () => {
    const store = postgresStore({ pool, schema: await migrated('orphans') })
    await openShop(store).unknownPayment('orphan')
    program.write(
      'orphans.config.ts',
      `import pg from 'pg'
import { createLatchkey, singleTenant } from 'latchkey'
import { postgresStore } from 'latchkey/stores/postgres'
export default {
  schema: 'orphans',
  application: () => {
    const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL })
    const latchkey = createLatchkey({ store: postgresStore({ pool, schema: 'orphans' }), scope: singleTenant })
    latchkey.guarded('refunds.create', { onFailure: 'hold' })
    return { latchkey, close: () => pool.end() }
  },
}`,
    )
    const { code, stdout, stderr } = await program.run(['doctor', '--config', 'orphans.config.ts', '--json'], {
      env: { DATABASE_URL: database.url },
      node: ['--conditions=latchkey-source'],
    })
    expect(code, stderr).toBe(1)
    expect(JSON.parse(stdout)).toContainEqual(
      expect.objectContaining({
        check: 'operations',
        verdict: 'FAIL',
        text: 'payments.create has 1 rows that wait, and no code',
      }),
    )
  })

  it('notices a transaction that somebody forgot, and how to end it', async () => {
    const client = await pool.connect()
    await client.query('begin')
    await client.query('select pg_current_xact_id()')
    await new Promise(resolve => setTimeout(resolve, 50))
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
    const check = horizonCheck({ pool }, { warnMs: 20, failMs: 40 })
    let finding = (await check.look())[0]
    // The server is shared with other suites: their transactions must not be ended, and may be older than this one.
    const named = async () => {
      finding = (await check.look())[0]
      return finding?.sql?.join('\n') ?? ''
    }
    await expect.poll(named, { timeout: 40_000 }).toContain(String(rows[0]?.pid))
    expect(finding).toMatchObject({ verdict: 'FAIL', text: expect.stringContaining('has a transaction open') })
    const ended = new Promise(resolve => client.once('error', resolve))
    for (const statement of finding?.sql ?? []) await pool.query(statement)
    await ended
    client.release(true)
    expect(await horizonCheck({ pool }).look()).toMatchObject([{ verdict: 'ok' }])
  })
})

describePgBouncer(
  'doctor through PgBouncer in statement mode',
  database => {
    const program = useProgram()

    it('says that no transaction can be opened, and which setting to change', async () => {
      expect((await program.run(['migrate'], { env: { DATABASE_URL: database.directUrl } })).code).toBe(0)
      const { code, stdout } = await program.run(['doctor'], { env: { DATABASE_URL: database.url } })
      expect(code).toBe(1)
      expect(stdout).toMatch(/FAIL {2}pooler .*no transaction can be opened.*\n.*pool_mode = transaction/)
    })
  },
  'statement',
)
