import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { Hono } from 'hono'
import pg from 'pg'
import { describePostgres } from '../../../../../test/servers/describe-postgres.ts'
import { singleTenant } from '../../../src/engine/request.ts'
import { createLatchkey } from '../../../src/engine/latchkey.ts'
import { idempotent } from '../../../src/http/hono/index.ts'
import { postgresStore } from '../../../src/stores/postgres/index.ts'
import { runRequest } from '../fixture.ts'

describePostgres('a role without the rights that requests need', database => {
  const role = `r_${randomBytes(8).toString('hex')}`
  let owner: pg.Pool
  let limited: pg.Pool
  beforeAll(async () => {
    owner = new pg.Pool({ connectionString: database.url, max: 2 })
    owner.on('error', () => {})
    await postgresStore({ pool: owner }).migrate()
    await owner.query(`create role ${role} login; grant usage on schema latchkey to ${role};
      grant select, insert, delete on all tables in schema latchkey to ${role}`)
    const url = new URL(database.url)
    url.username = role
    limited = new pg.Pool({ connectionString: url.href, max: 5 })
    limited.on('error', () => {})
  })
  afterAll(async () => {
    await limited.end()
    await owner.query(`drop owned by ${role}; drop role ${role}`)
    await owner.end()
  })

  it('runs nothing of any kind and leaves no row, is told which right it lacks, and serves once it has it', async () => {
    const latchkey = createLatchkey({ store: postgresStore({ pool: limited }), scope: singleTenant })
    let runs = 0
    const work = () => (runs += 1)
    const guarded = latchkey.guarded('payments.create', { onFailure: 'hold', onStoreDown: 'run-unprotected' })
    const atomic = latchkey.atomic('orders.create')
    const outcome = { status: 200, headers: [], body: undefined, version: 0 }
    const phased = latchkey.phased('refunds.create', { version: 1 }, async () => (work(), outcome))
    const deferred = latchkey.deferred(
      'exports.create',
      { version: 1, deadlineMs: 60_000 },
      async () => (work(), outcome),
    )
    const client = await limited.connect()
    await client.query('begin')
    const asked = [
      guarded.run(runRequest('a'), work),
      atomic.run(runRequest('a'), work),
      atomic.run({ ...runRequest('b'), tx: client }, work),
      phased.run({ ...runRequest('a'), input: {} }),
      deferred.run({ ...runRequest('a'), input: {} }),
    ]
    for (const each of asked) {
      await expect(each).rejects.toMatchObject({
        code: 'store-rights',
        message: `the role "${role}" may not update on "latchkey".keys: run grant update on "latchkey".keys to "${role}"`,
      })
    }
    await client.query('rollback')
    client.release()
    expect(runs).toBe(0)
    expect((await owner.query('select from latchkey.keys')).rowCount).toBe(0)

    const app = new Hono().post('/payments', idempotent(guarded), c => c.json({ runs: work() }, 201))
    const post = () => app.request('/payments', { method: 'POST', headers: { 'Idempotency-Key': 'k' }, body: '{}' })
    const refused = await post()
    expect(refused.status).toBe(503)
    expect(await refused.text()).not.toMatch(new RegExp(`${role}|grant|latchkey"`))

    await owner.query(`grant update on all tables in schema latchkey to ${role}`)
    // Looked at again once a second.
    const served = async (): Promise<Response> => {
      const response = await post()
      if (response.status !== 503) return response
      await pause(100)
      return served()
    }
    expect((await served()).status).toBe(201)
    expect(runs).toBe(1)
    await latchkey.close()
  })
})
