/** Runs what docs/guides/operations.md shows, on a server of its own because roles belong to the whole server. */
import { readFileSync } from 'node:fs'
import { createLatchkey, json, outcomeUnknown, singleTenant } from 'latchkey'
import { postgresMigrations, postgresStore } from 'latchkey/stores/postgres'
import pg from 'pg'
import { register } from 'prom-client'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { describeOwnPostgres } from '../../../test/servers/describe-postgres.ts'
import { onPrometheus, throughOtel } from '../src/metrics.ts'
import { type Metrics, monitor } from '../src/monitor.ts'
import { erase } from '../src/erase.ts'
import { settle } from '../src/settle.ts'
import { waiting } from '../src/waiting.ts'
import { workersOf } from '../src/workers.ts'

const guide = readFileSync(new URL('../../../docs/guides/operations.md', import.meta.url), 'utf8')
const statements = [...guide.matchAll(/^```sql\n(.*?)\n```$/gms)].map(([, code = '']) => code)
const used = new Set<string>()

/** The one block of the guide that contains this. */
function shown(part: string): string {
  const found = statements.filter(code => code.includes(part))
  expect(found, `blocks with ${part}`).toHaveLength(1)
  const [code = ''] = found
  used.add(code)
  return code
}

describeOwnPostgres('the guide for operations', own => {
  let owner: pg.Pool
  let app: pg.Pool
  const counted: string[] = []
  const logged: string[] = []
  const metrics: Metrics = {
    add: (name, labels) => counted.push(`${name} ${labels['operation']}`),
    record: (name, value, labels) => counted.push(`${name} ${labels['operation']} ${typeof value}`),
  }

  function open() {
    const store = postgresStore({ pool: app })
    const telemetry = monitor(metrics, (line, error) =>
      logged.push(`${line} (${error instanceof Error ? error.message : ''})`),
    )
    return createLatchkey({ store, scope: singleTenant, telemetry, maintenance: false })
  }
  let latchkey: ReturnType<typeof open>

  const poolOf = (user: string) => {
    const url = new URL(own.server.url)
    url.username = user
    const pool = new pg.Pool({ connectionString: url.href, max: 4 })
    pool.on('error', () => {})
    return pool
  }
  const rowsOf = async (part: string) => (await owner.query(shown(part))).rows

  beforeAll(async () => {
    owner = new pg.Pool({ connectionString: own.server.url, max: 2 })
    owner.on('error', () => {})
    await postgresStore({ pool: owner }).migrate()
    await owner.query('create role app login; create role viewer login')
    app = poolOf('app')
  })
  afterAll(async () => {
    await latchkey.close()
    await Promise.all([app.end(), owner.end()])
  })

  it('reports a missing right, gives the application what it needs, and on later tables too', async () => {
    expect(await postgresStore({ pool: app }).check()).toMatchObject({ kind: 'rights' })
    const refused = open()
    const early = refused.guarded('payments.create', { onFailure: 'hold' })
    const request = { scope: 'acme', key: 'early-bird', input: 1 }
    await expect(early.run(request, async () => 1)).rejects.toMatchObject({ code: 'store-rights' })
    await refused.close()
    expect(logged).toEqual([expect.stringMatching(/^latchkey - -: the postgres store is not fit .*grant usage/is)])
    expect(logged[0]).not.toContain('early-bird')
    await owner.query(shown('delete on all tables in schema latchkey to app'))
    expect(await postgresStore({ pool: app }).check()).toMatchObject({ kind: 'fit' })
    await owner.query(shown('alter default privileges'))
    await owner.query(shown('erase_audit_11'))
    await owner.query(shown('expire_audit_records_12'))
    await owner.query('create table latchkey.later (n integer)')
    await app.query('insert into latchkey.later values (1)')
    await owner.query('drop table latchkey.later')
  })

  it('lets a viewer look and not touch', async () => {
    await owner.query(shown('to viewer'))
    const viewer = poolOf('viewer')
    expect((await viewer.query('select count(*)::int as n from latchkey.keys')).rows).toEqual([{ n: 0 }])
    await expect(viewer.query('delete from latchkey.keys')).rejects.toThrow('permission denied')
    await viewer.end()
  })

  it('has a telemetry for each exporter, which counts what happened', async () => {
    for (const telemetry of [onPrometheus, throughOtel]) {
      const counting = createLatchkey({ store: postgresStore({ pool: app }), scope: singleTenant, telemetry })
      const operation = counting.guarded('orders.count', { onFailure: 'hold' })
      expect(await operation.run({ scope: 'counting', key: 'once', input: 1 }, () => 1)).toBe(1)
      await counting.close()
    }
    const shownNow = await register.metrics()
    expect(shownNow).toContain('api_idempotency_reserve_created_count_total{operation="orders.count"} 1')
    await owner.query(`delete from latchkey.keys where operation = 'orders.count'`)
  })

  it('counts what happened, by operation', async () => {
    latchkey = open()
    const pay = latchkey.guarded('payments.create', { onFailure: 'hold', describe: () => 'one tea' })
    for (const scope of ['acme', 'other']) await pay.run({ scope, key: 'paid', input: 1 }, async () => ({ paid: true }))
    const lost = pay.run({ scope: 'acme', key: 'lost', input: 1 }, async () => {
      throw outcomeUnknown(new Error('no answer'))
    })
    await expect(lost).rejects.toMatchObject({ code: 'outcome-unknown' })

    // The second definition does not begin with the step that the first one has recorded.
    const request = { scope: 'acme', key: 'parcel', input: 1 }
    const first = latchkey.phased('parcels.send', { version: 1 }, async x => {
      await x.phase('pack', async () => 'packed')
      throw new Error('no stamps')
    })
    await expect(first.run(request)).rejects.toThrow('no stamps')
    const later = open()
    const changed = later.phased('parcels.send', { version: 1 }, async x => {
      await x.phase('weigh', async () => 'weighed')
      return json(200, {})
    })
    await owner.query('update latchkey.keys set due_at = now() where due_at is not null')
    await expect(changed.run(request)).rejects.toThrow()
    await later.close()

    expect(counted).toContain('api.idempotency.reserve.created payments.create')
    expect(counted).toContain('api.idempotency.execution.duration payments.create number')
    expect(counted).toContain('api.idempotency.parked parcels.send')
  })

  it('shows states, unknown and parked work, and sizes', async () => {
    expect(await rowsOf('count(*) as rows, min(created_at)')).toMatchObject([
      { operation: 'parcels.send', rows: '1' },
      { operation: 'payments.create', state: 'completed', rows: '2', oldest: expect.any(Date) },
      { operation: 'payments.create', state: 'unknown', rows: '1' },
    ])
    expect(await rowsOf('now() - d.since')).toMatchObject([{ operation: 'payments.create', rows: '1' }])
    // Two statements, so two results.
    const [work, messages] = (await owner.query(shown('latchkey.outbox_parked'))) as unknown as pg.QueryResult[]
    expect(work?.rows).toMatchObject([
      { operation: 'parcels.send', scope: 'acme', last_error_code: expect.any(String) },
    ])
    expect(messages?.rows).toEqual([])
    const sizes = await rowsOf('pg_total_relation_size')
    expect(sizes.map(({ relname }) => relname)).toEqual(expect.arrayContaining(['keys', 'outcomes', 'outbox']))
    expect(await rowsOf('from latchkey.migrations order')).toMatchObject(
      postgresMigrations().map((_, at) => ({ version: at + 1 })),
    )
  })

  it('finds rows by tenant, by their parts, and all that wait', async () => {
    const found = await rowsOf("interval '1 hour'")
    expect(found.map(({ description }) => description)).toEqual(['one tea', 'one tea', null])
    const parts = { scope: 'acme', operation: 'payments.create', key: 'lost' }
    expect(found.map(({ id }) => id)).toContain(latchkey.identify(parts))
    expect((await latchkey.inspect(parts)).record).toMatchObject({ state: 'unknown', scope: 'acme' })
    const operations = []
    for await (const { operation } of waiting(latchkey)) operations.push(operation)
    expect(operations).toEqual(['payments.create', 'parcels.send'])
  })

  it('settles what is unknown, and says what it would need', async () => {
    const print = vi.spyOn(console, 'log').mockImplementation(() => {})
    const id = latchkey.identify({ scope: 'acme', operation: 'payments.create', key: 'lost' })
    const act = (verdict: Parameters<typeof settle>[2]) => settle(latchkey, id, verdict, 'ops@shop')
    expect(await act({ kind: 'happened', value: 1 })).toBe('nothing changed: this row needs { outcome }')
    expect(await act({ kind: 'happened', status: 200, json: { paid: 'late' } })).toMatch(/^settled/)
    expect(await act({ kind: 'never-happened' })).toBe('nothing changed: the row is completed')
    print.mockRestore()
    const { rows } = await owner.query('select actor from latchkey.audit where key_id = $1', [id])
    expect(rows).toEqual([{ actor: 'ops@shop' }])
  })

  it('gives the application no way to change what operators did', async () => {
    for (const statement of [
      `update latchkey.audit set actor = 'somebody else'`,
      'delete from latchkey.audit',
      'truncate latchkey.audit',
      'delete from latchkey.outbox_audit',
      'delete from latchkey.migrations',
    ])
      await expect(app.query(statement), statement).rejects.toThrow('permission denied')
    expect((await app.query('select actor from latchkey.audit')).rows).toEqual([{ actor: 'ops@shop' }])
  })

  it('counts what is expired until the workers delete it', async () => {
    expect(await rowsOf('as expired')).toEqual([{ expired: '0', oldest: null }])
    await owner.query(`update latchkey.keys set expires_at = now() - interval '1 day' where scope = 'other'`)
    expect(await rowsOf('as expired')).toMatchObject([{ expired: '1' }])
    const workers = workersOf(latchkey)
    workers.start()
    await expect.poll(() => rowsOf('as expired'), { timeout: 20_000 }).toEqual([{ expired: '0', oldest: null }])
    await workers.stop()
  })

  it('erases a tenant from every table, and nobody else', async () => {
    const refund = latchkey.guarded('refunds.create', { onFailure: 'hold' })
    await refund.run({ scope: 'other', key: 'large', input: 1 }, async () => 'x'.repeat(100_000))
    const lost = refund.run({ scope: 'acme', key: 'lost', input: 1 }, async () => {
      throw outcomeUnknown(new Error('no answer'))
    })
    await expect(lost).rejects.toMatchObject({ code: 'outcome-unknown' })
    await refund.run({ scope: 'acme', key: 'large', input: 1 }, async () => 'x'.repeat(100_000))
    const { rows: ids } = await owner.query(`select id from latchkey.keys where scope = 'acme'`)
    expect(ids).toHaveLength(5)
    const { rows: columns } = await owner.query(`select table_name as name, column_name as id
      from information_schema.columns
      where table_schema = 'latchkey' and data_type = 'uuid' and column_name in ('id', 'key_id')`)
    const left = async () => {
      const counts: Record<string, number> = {}
      for (const { name, id } of columns) {
        const text = `select count(*)::int as n from latchkey.${name} where ${id} = any($1)`
        counts[name] = (await owner.query(text, [ids.map(row => row.id)])).rows[0].n
      }
      return Object.entries(counts).filter(([, n]) => n > 0)
    }
    expect((await left()).map(([name]) => name)).toEqual(
      expect.arrayContaining(['audit', 'due', 'evidence', 'inputs', 'keys', 'outcomes', 'steps', 'waiting']),
    )
    await latchkey.settle(
      { scope: 'acme', operation: 'refunds.create', key: 'lost' },
      { kind: 'never-happened' },
      { by: 'ops@shop', reason: 'the customer of acme called' },
    )
    const print = vi.spyOn(console, 'log').mockImplementation(() => {})
    // The parcel is parked, and waits for a person.
    expect(await erase(latchkey, 'acme')).toBe(1)
    expect(print.mock.lastCall).toEqual(['erased 4 rows, 0 messages and the texts of 2 entries of the audit'])
    const parcel = { scope: 'acme', operation: 'parcels.send', key: 'parcel' }
    await latchkey.unpark(parcel, { by: 'ops@shop', reason: 'acme is gone' })
    expect(await erase(latchkey, 'acme')).toBe(0)
    print.mockRestore()
    expect(await left()).toEqual([['audit', 3]])
    const { rows: audit } = await owner.query(
      'select actor, reason, detail from latchkey.audit where key_id = any($1)',
      [ids.map(row => row.id)],
    )
    expect(audit).toEqual(Array.from({ length: 3 }, () => ({ actor: 'ops@shop', reason: 'erased', detail: '' })))
    expect((await owner.query('select scope from latchkey.keys')).rows).toEqual([{ scope: 'other' }])
    expect((await owner.query('select scope from latchkey.erasures')).rows).toEqual([{ scope: null }])
  })

  it('lets the application blank no audit but that of a tenant that is erased', async () => {
    await expect(app.query(`update latchkey.audit set reason = 'x'`)).rejects.toThrow('permission denied')
    await expect(app.query('delete from latchkey.outbox_audit')).rejects.toThrow('permission denied')
    await expect(app.query('delete from latchkey.audit_records')).rejects.toThrow('permission denied')
    expect((await app.query(`select latchkey.erase_audit_11('other', 10) as n`)).rows).toEqual([{ n: 0 }])
    const viewer = poolOf('viewer')
    await expect(viewer.query(`select latchkey.erase_audit_11('acme', 10)`)).rejects.toThrow('permission denied')
    await viewer.end()
    const { rows } = await owner.query(`select actor, detail from latchkey.audit where act = 'erase' order by audit_id`)
    expect(rows[0]).toEqual({ actor: 'app', detail: expect.stringMatching(/^[0-9a-f]{64} 2$/) })
  })

  it('has run every statement of the guide', () => {
    expect(statements.filter(code => !used.has(code))).toEqual([])
  })
})
