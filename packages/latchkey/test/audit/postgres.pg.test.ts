import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { describePostgres } from '../../../../test/servers/describe-postgres.ts'
import { postgresMigrations, postgresStore } from '../../src/stores/postgres/index.ts'
import { latchkeyOn } from '../engine/fixture.ts'
import { rawPostgres } from '../sealed/databases.ts'
import { erasedTrailCases } from './erase.cases.ts'
import { trailCases } from './trail.cases.ts'

describePostgres('the trail on PostgreSQL', database => trailCases(() => rawPostgres(database.url)))
describePostgres('the trail of an erased tenant on PostgreSQL', database =>
  erasedTrailCases(() => rawPostgres(database.url)),
)

const poolOf = (url: string, max = 4) => {
  const pool = new pg.Pool({ connectionString: url, max })
  pool.on('error', () => {})
  return pool
}

describePostgres('the line of an atomic operation in a transaction of the application', database => {
  it('commits and rolls back with it', async () => {
    const pool = poolOf(database.url)
    const store = postgresStore({ pool })
    await store.migrate()
    const latchkey = latchkeyOn(store, { audit: { records: 'all' } })
    const order = latchkey.atomic('order')
    const run = async (key: string, end: 'commit' | 'rollback') => {
      const client = await pool.connect()
      await client.query('begin')
      await order.run({ scope: 'acme', key, input: 1, tx: client }, async () => key)
      await client.query(end)
      client.release()
    }
    await run('gone', 'rollback')
    expect((await latchkey.auditRecords()).lines).toEqual([])
    await run('kept', 'commit')
    expect((await latchkey.auditRecords()).lines).toMatchObject([{ what: 'completed', operation: 'order' }])
    await latchkey.close()
    await pool.end()
  })
})

describePostgres('the role of the application', database => {
  const role = `r_${randomBytes(8).toString('hex')}`
  let owner: pg.Pool
  let app: pg.Pool
  beforeAll(async () => {
    owner = poolOf(database.url)
    await owner.query(`create role ${role} login; create schema latchkey; grant usage on schema latchkey to ${role};
      alter default privileges in schema latchkey grant select, insert, update, delete on tables to ${role}`)
    for (const { version, sql } of postgresMigrations()) if (version <= 11) await owner.query(sql)
    await owner.query(`revoke update, delete on latchkey.audit, latchkey.outbox_audit from ${role};
      grant execute on function latchkey.erase_audit_11 to ${role}`)
    await postgresStore({ pool: owner }).migrate()
    const url = new URL(database.url)
    url.username = role
    app = poolOf(url.href)
  })
  afterAll(async () => {
    await app.end()
    await owner.query(`drop owned by ${role}; drop role ${role}`)
    await owner.end()
  })

  it('adds and reads lines, and cannot change or delete one, whatever the default privileges gave', async () => {
    const latchkey = latchkeyOn(postgresStore({ pool: app }), { audit: { records: 'all' } })
    const pay = latchkey.guarded('pay', { onFailure: 'hold' })
    await pay.run({ scope: 'acme', key: 'a', input: 1 }, async () => 1)
    await latchkey.atomic('order').run({ scope: 'acme', key: 'a', input: 1 }, async () => 1)
    await expect(pay.run({ scope: 'acme', key: 'a', input: 2 }, async () => 1)).rejects.toThrow()
    expect((await latchkey.auditRecords()).lines.map(({ what }) => what)).toEqual(['completed', 'completed', 'misuse'])
    for (const statement of [
      `update latchkey.audit_records set what = 'failed'`,
      'update latchkey.audit_records set status = 200',
      'delete from latchkey.audit_records',
      'truncate latchkey.audit_records',
    ]) {
      await expect(app.query(statement), statement).rejects.toThrow('permission denied')
    }
    await latchkey.close()
  })

  it('erases lines with the right that it had for the audit, and gets the other functions only from the owner', async () => {
    const store = postgresStore({ pool: app })
    await store.erasure?.mark('acme')
    expect(await store.erasure?.erase({ scope: 'acme', limit: 10 })).toMatchObject({ auditLines: 3 })
    await expect(store.auditRecords.expire({ olderThanMs: 0, limit: 10 })).rejects.toThrow('permission denied')
    await expect(store.auditRecords.take({ limit: 1, leaseMs: 1_000 })).resolves.toMatchObject({ run: 1 })
    const taken = { run: 1, lines: [] }
    await expect(store.auditRecords.handedOver(taken)).rejects.toThrow('permission denied')
    await owner.query(`grant execute on function latchkey.expire_audit_records_12 to ${role};
      update latchkey.audit_records set at = at - interval '23 hours'`)
    expect(await store.auditRecords.expire({ olderThanMs: 0, limit: 10 })).toBe(0)
    await owner.query(`update latchkey.audit_records set at = at - interval '2 hours'`)
    expect(await store.auditRecords.expire({ olderThanMs: 0, limit: 2 })).toBe(2)
  })

  it('is told which right it lacks before the first request, where lines are wanted', async () => {
    await owner.query(`revoke insert on latchkey.audit_records from ${role}`)
    expect(await postgresStore({ pool: app }).check()).toEqual({ kind: 'fit' })
    const recording = postgresStore({ pool: app }).auditRecords.recording()
    expect(await recording?.check?.()).toMatchObject({
      kind: 'rights',
      message: `the role "${role}" may not insert on "latchkey".audit_records: run grant insert on "latchkey".audit_records to "${role}"`,
    })
  })
})
