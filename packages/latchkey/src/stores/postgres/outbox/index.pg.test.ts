import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import pg from 'pg'
import { describePostgres } from '../../../../../../test/servers/describe-postgres.ts'
import { runOutboxCases, type StoreHarness } from '@latchkey/conformance'
import type { NewMessage } from '../../../ports/outbox.ts'
import { type Overloads, plantOverloads } from '../../../../test/postgres/overloads.ts'
import { dialect, outboxNames } from '../sql/names.ts'
import { lagStatement } from './operate.ts'
import { leaseStatement } from './lanes.ts'
import { openPostgresStore } from '../store.ts'
import { appendAll, messageOf, parkOne } from '../../../../test/outbox/park-one.ts'

describePostgres('the outbox on PostgreSQL', database => {
  let pool: pg.Pool
  let overloads: Overloads | undefined
  beforeAll(async () => {
    pool = new pg.Pool({ connectionString: database.url, max: 20 })
    // The database is dropped by force when the suite ends, which the last idle connections may still live to see.
    pool.on('error', () => {})
    overloads = await plantOverloads(database.url, pool)
  })
  afterAll(async () => {
    await pool.end()
    await overloads?.drop()
  })

  runOutboxCases(() => outboxHarness(pool), it)

  it('has called nothing in all of this that another role put into the schema public', () => {
    expect(overloads && [...overloads.called, ...overloads.unqualified]).toEqual([])
  })

  it('looks for work and counts what waits by the index, however many delivered messages are kept', async () => {
    const store = openPostgresStore({ pool, schema: 'plans' })
    await store.migrate()
    await pool.query(`
      insert into plans.outbox (lane, dedup_id, topic, payload, headers, created_at)
        select i % 8, i, 't', '{}', '{}', now() from generate_series(1, 20000) i;
      update plans.outbox_lanes l set (cursor_xid, cursor_id) =
        (select o.xid, o.id from plans.outbox o where o.lane = l.lane order by o.xid desc, o.id desc limit 1);
      analyze plans.outbox, plans.outbox_lanes`)
    const sql = dialect('plans')
    const names = outboxNames(sql)
    const texts: [string, unknown[]][] = [
      [leaseStatement(sql, names), ['lease', 1_000]],
      [lagStatement(sql, names), []],
    ]
    for (const [text, values] of texts) {
      const { rows } = await pool.query<{ 'QUERY PLAN': string }>(`explain ${text}`, values)
      const plan = rows.map(row => row['QUERY PLAN']).join('\n')
      expect(plan).toContain('outbox_in_order')
      expect(plan).not.toMatch(/Seq Scan on outbox o/)
    }
    expect(await store.outbox?.leaseLane({ leaseId: 'lease', leaseMs: 1_000 })).toBeUndefined()
  })

  it.each([
    ['new', 1],
    ['large', 20_000],
  ])(
    'reads a batch in the order of the index and no further of a %s table that nobody has analyzed',
    async (schema, rows) => {
      await openPostgresStore({ pool, schema }).migrate()
      await pool.query(`alter table "${schema}".outbox set (autovacuum_enabled = off);
      insert into "${schema}".outbox (lane, dedup_id, topic, payload, headers, created_at)
        select 0, i, 't', '{}', '{}', now() from generate_series(1, ${rows}) i`)
      const plans: string[] = []
      const watched = new pg.Pool({ connectionString: database.url, max: 1 })
      watched.on('error', () => {})
      watched.on('connect', client => client.on('notice', ({ message: text }) => plans.push(text ?? '')))
      await watched.query(`load 'auto_explain'; set auto_explain.log_nested_statements = on; set client_min_messages = log;
      set auto_explain.log_min_duration = 0`)
      const { outbox } = openPostgresStore({ pool: watched, schema })
      const lease = await vi.waitUntil(() => outbox?.leaseLane({ leaseId: 'lease', leaseMs: 60_000 }), 30_000)
      const batch = await outbox?.next(lease, { limit: 100 })
      await watched.end()
      expect(batch).toMatchObject({ messages: { length: Math.min(rows, 100) } })
      const reads = plans.filter(plan => plan.includes('message_max'))
      expect(reads).toHaveLength(1)
      expect(reads[0]).toContain('Index Scan using outbox_in_order')
      expect(reads[0]).not.toMatch(/Sort|Bitmap|Seq Scan/)
    },
  )

  it('skips nothing when the entry of the audit cannot be written', async () => {
    const store = openPostgresStore({ pool, schema: 'unwritten' })
    await store.migrate()
    const position = await parkOne(store)
    // No operator has such a source: the column refuses it.
    const by = { by: 'ann', reason: 'why', source: null as never, requestId: 'r' }
    await expect(store.admin.skip({ position, by })).rejects.toThrow()
    expect((await store.outbox.parked({ limit: 10 })).map(each => each.position)).toEqual([position])
    expect(await store.admin.entries({ limit: 10 })).toEqual([])
  })

  it('forgets nobody who is set aside behind a message in the moment in which that is skipped', async () => {
    const store = openPostgresStore({ pool, schema: 'meeting' })
    await store.migrate()
    const { outbox, admin } = store
    const position = await parkOne(store)
    await appendAll(store, [messageOf('a', 'a2')])
    const lease = await vi.waitUntil(() => outbox.leaseLane({ leaseId: 'lease', leaseMs: 60_000 }), 30_000)
    const batch = await outbox.next(lease, { limit: 10 })
    if (batch === 'lease-lost') throw new Error('the lane was lost')
    expect(batch.behind).toHaveLength(1)
    const holder = await pool.connect()
    await holder.query('begin; select from meeting.outbox_lanes for update')
    const waiters = async (count: number) =>
      vi.waitUntil(async () => (await waitingFor(pool, 'meeting')) === count, { timeout: 30_000 })
    const by = { by: 'ann', reason: 'why', source: 'cli', requestId: 'r' } as const
    const skipped = admin.skip({ position, by })
    await waiters(1)
    // It has looked at the table before the skip is committed, and writes after it.
    const settled = outbox.settle(lease, { batch, ends: [], then: { kind: 'release' } })
    await waiters(2)
    await holder.query('commit')
    holder.release()
    expect([(await skipped).kind, await settled]).toEqual(['acted', 'written'])
    const { rows } = await pool.query('select due_at is not null as due from meeting.outbox_parked')
    expect(rows).toEqual([{ due: true }])
    const next = await vi.waitUntil(() => outbox.leaseLane({ leaseId: 'next', leaseMs: 60_000 }), 30_000)
    expect(await outbox.next(next, { limit: 10 })).toMatchObject({ messages: [{ dedupId: 'a2' }] })
  })

  it('touches neither the messages nor any other table when a whole batch was delivered', async () => {
    const store = openPostgresStore({ pool, schema: 'writes' })
    await store.migrate()
    const { outbox, transactor } = store
    if (outbox === undefined || transactor === undefined) throw new Error('the postgres store has an outbox')
    await transactor.transaction(async tx => {
      for (let turn = 0; turn < 50; turn += 1) await outbox.append(tx, message(turn))
      return 'commit'
    })
    // The transactions of the suites beside this one may hold the messages back for a moment.
    const lease = await vi.waitUntil(() => outbox.leaseLane({ leaseId: 'lease', leaseMs: 60_000 }), 30_000)
    const batch = await outbox.next(lease, { limit: 100 })
    if (batch === 'lease-lost') throw new Error('expected a batch')
    expect(batch.messages).toHaveLength(50)
    const otherRows = async () => {
      const { rows } = await pool.query<{ rows: string }>(
        'select count(*) as rows from writes.outbox_parked union all select count(*) from writes.outbox_delivered',
      )
      return rows.map(row => Number(row.rows))
    }
    const ends = batch.messages.map(
      ({ position }) => ({ kind: 'delivered', position, downstreamId: undefined }) as const,
    )
    expect(await outbox.settle(lease, { batch, ends, then: { kind: 'release' } })).toBe('written')
    expect(await otherRows()).toEqual([0, 0])
    const { rows } = await pool.query('select xmax from writes.outbox where xmax <> 0')
    expect(rows).toEqual([])
  })
})

function message(turn: number): NewMessage {
  return { topic: 't', aggregate: 'a', dedupId: `m${turn}`, payload: Buffer.from('{}'), headers: {} }
}

/** How many statements about this schema wait for a lock. */
async function waitingFor(pool: pg.Pool, schema: string): Promise<number> {
  const { rows } = await pool.query<{ waiting: number }>(
    `select count(*)::integer as waiting from pg_stat_activity where wait_event_type = 'Lock' and query like '%' || $1 || '%'`,
    [schema],
  )
  return rows[0]?.waiting ?? 0
}

let schemas = 0

/** A schema for each case. Its clock is the server's, put forward by what a table of the harness says. */
async function outboxHarness(pool: pg.Pool): Promise<StoreHarness> {
  schemas += 1
  const schema = `outbox-${schemas}`
  await pool.query(`
    create schema "${schema}";
    create table "${schema}".forward (ms float8 not null);
    create function "${schema}".test_clock() returns timestamptz language sql volatile as
      $$ select clock_timestamp() + (select coalesce(sum(ms), 0) from "${schema}".forward) * interval '1 millisecond' $$`)
  const open = () => openPostgresStore({ pool, schema, clock: `"${schema}".test_clock()` })
  await open().migrate()
  return {
    open: async () => open(),
    advance: async ms => void (await pool.query(`insert into "${schema}".forward values ($1)`, [ms])),
    close: async () => void (await pool.query(`drop schema "${schema}" cascade`)),
  }
}
