import { afterAll, beforeAll, expect, it } from 'vitest'
import pg from 'pg'
import { describePostgres } from '../../../../../../test/servers/describe-postgres.ts'
import type { WorkListing } from '../../../ports/faculties/admin.ts'
import { postgresStore } from '../index.ts'
import { findStatement } from '../references/index.ts'
import { dialect } from '../sql/names.ts'
import { entriesStatement } from './entries.ts'
import { lanesStatement } from './lanes.ts'
import { overdueStatement } from './overdue.ts'
import { limited } from './transaction.ts'
import { groupsStatement, workStatement } from './work.ts'

/** Completed rows with a reference each, two thousand unknown ones and five hundred parked ones among them, and an entry of the audit for some. */
const rows = 200_000
const fill = `
  insert into latchkey.keys (id, claim_id, fence, created_at, expires_at, completed_at, parked_at, attempts, crashes, state, recovery, fingerprint, scope, operation)
  select pg_catalog.md5(n::text)::uuid, gen_random_uuid(), 1, now() - interval '2 hours', now() + interval '1 day',
    case when n % 100 > 0 then now() end, case when n % 400 = 0 then now() end, 1, 0, case when n % 100 > 0 then 2 else 4 end, 0,
    decode(repeat('ab', 33), 'hex'), 'tenant-' || n % 500, 'payments.create'
  from generate_series(1, ${rows}) n;
  insert into latchkey.due (id, cause, since) select k.id, 'TimeoutError', now() - interval '1 hour' * random() from latchkey.keys k where k.state = 4;
  insert into latchkey.waiting (id, due_at, parked) select k.id, now(), true from latchkey.keys k where k.parked_at is not null;
  insert into latchkey.key_references (key_id, ref, at) select k.id, 'ref ' || k.id, now() from latchkey.keys k;
  insert into latchkey.audit (key_id, act, actor, reason, detail, at) select k.id, 'take', 'person ' || (random() * 100)::integer, 'why', '', now()
  from latchkey.keys k where k.state = 4;
  vacuum analyze latchkey.keys, latchkey.due, latchkey.waiting, latchkey.key_references, latchkey.audit, latchkey.audit_details`

/** Messages: delivered ones that are kept, 40,000 that wait behind one that is parked, 20,000 that are parked, and 30,000 new ones. */
const fillOutbox = `
  insert into latchkey.outbox (lane, aggregate, dedup_id, topic, payload, headers, created_at)
    select n % 8, case when n > 60000 and n <= 100000 then 'long ' || n % 8 else 'of ' || n end, n, 't', '{}', '{}', now()
    from generate_series(1, 150000) n;
  update latchkey.outbox_lanes l set (cursor_xid, cursor_id) =
    (select o.xid, o.id from latchkey.outbox o where o.lane = l.lane and o.id <= 120000 order by o.xid desc, o.id desc limit 1);
  insert into latchkey.outbox_parked (id, xid, lane, aggregate, blocks, due_at, parked_at, cause)
    select o.id, o.xid, o.lane, o.aggregate, true, null, case when o.id <= 60008 or o.id > 100000 then now() end, 'HTTP 400'
    from latchkey.outbox o where o.id > 60000 and o.id <= 120000;
  vacuum analyze latchkey.outbox, latchkey.outbox_parked, latchkey.outbox_lanes`

interface PlanNode {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Actual Rows': number
  readonly 'Actual Loops': number
  readonly 'Rows Removed by Filter'?: number
  readonly Plans?: readonly PlanNode[]
}

const sql = dialect('latchkey')
const page: Omit<WorkListing, 'kind'> = { limit: 50 }
const values = [null, null, null, null, null, null, 51, null]
/** After most of the two thousand, the youngest of which has just become unknown. */
const farMicros = String((Date.now() - 120_000) * 1_000)
const farId = '00000000-0000-4000-8000-000000000000'
const farDown = `${farMicros}_${farId}`
/** Rows that were granted before it are not read: all of them. */
const markS = () => Date.now() / 1_000 - 300
const someIds = Array.from({ length: 100 }, (_, n) => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`)
const farValues = [null, null, null, null, farMicros, farId, 51, null]

describePostgres('the plans of operators’ queries, among two hundred thousand rows', database => {
  let pool: pg.Pool
  beforeAll(async () => {
    pool = new pg.Pool({ connectionString: database.url, max: 2 })
    await postgresStore({ pool }).migrate()
    for (const statement of [...fill.split(';'), ...fillOutbox.split(';')]) await pool.query(statement)
  }, 120_000)
  afterAll(() => pool.end())

  async function planOf(text: string, given: readonly unknown[]): Promise<readonly PlanNode[]> {
    const { rows: found } = await pool.query(`explain (analyze, format json) ${text}`, [...given])
    return nodesOf(found[0]['QUERY PLAN'][0].Plan)
  }

  /** How many rows of the keys a plan has touched: kept and thrown away. */
  const touched = (plan: readonly PlanNode[]) =>
    plan
      .filter(node => node['Relation Name'] === 'keys')
      .reduce(
        (sum, node) => sum + (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops'],
        0,
      )

  it.each([
    ['unknown rows, a page', workStatement(sql, { ...page, kind: 'unknown' }), values, 200],
    ['unknown rows, a page far down', workStatement(sql, { ...page, kind: 'unknown', after: farDown }), farValues, 200],
    ['parked rows, a page', workStatement(sql, { ...page, kind: 'parked' }), values, 1_200],
    ['rows in progress that were granted since a mark', overdueStatement(sql), [51, markS()], 0],
    ['overdue rows, a page', workStatement(sql, { ...page, kind: 'overdue' }), [...values, someIds], 200],
    ['groups of unknown rows', groupsStatement(sql, 'unknown'), [], 2_500],
    ['groups of overdue rows', groupsStatement(sql, 'overdue'), [someIds], 200],
    ['groups of parked rows', groupsStatement(sql, 'parked'), [], 1_200],
    ['a reference', findStatement(sql), ['ref nobody has', 100], 0],
  ])('%s scan no table of keys', async (_, text, given, most) => {
    const plan = await planOf(text, given)
    expect(plan.filter(node => node['Node Type'] === 'Seq Scan' && node['Relation Name'] === 'keys')).toEqual([])
    expect(plan.filter(node => node['Node Type'] === 'Seq Scan' && node['Relation Name'] === 'key_references')).toEqual(
      [],
    )
    expect(touched(plan)).toBeLessThanOrEqual(most)
  })

  it.each([
    ['the newest', { limit: 50 }, [null, null, null, 50]],
    ['of a person', { by: 'person 7', limit: 50 }, ['person 7', null, null, 50]],
    ['forward', { after: '10', limit: 50 }, [null, null, '10', 50]],
  ] as const)('entries of the audit, %s, come from an index', async (_, query, given) => {
    const plan = await planOf(entriesStatement(sql, query), given)
    expect(plan.filter(node => node['Node Type'] === 'Seq Scan' && node['Relation Name'] === 'audit')).toEqual([])
  })

  it('no list is compiled first: that takes longer than the list', async () => {
    const [row] =
      (await limited({ sql, pool, run: () => Promise.reject(new Error('not in the transaction')) }, run =>
        run<{ jit: string }>(`select pg_catalog.current_setting('jit') as jit`, []),
      )) ?? []
    expect(row?.jit).toBe('off')
  })

  it('lanes read the fronts of their indexes, and no table of messages', async () => {
    const plan = await planOf(lanesStatement(sql), [])
    const messages = plan.filter(node => ['outbox', 'outbox_parked'].includes(node['Relation Name'] ?? ''))
    expect(messages.map(node => node['Node Type'])).not.toContain('Seq Scan')
    const read = messages.reduce(
      (sum, node) => sum + (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops'],
      0,
    )
    // Of eight lanes a thousand each: new ones, those aside, their messages and the first of their lines; and 8,001 parked ones.
    expect(read).toBeLessThanOrEqual(8 * 4 * 1_001 + 8_001)
    const { admin } = postgresStore({ pool })
    const { lanes, partial } = await admin.lanes()
    const thousand = { count: 1_000, more: true }
    expect([lanes.length, partial, lanes[0]]).toMatchObject([
      8,
      false,
      { lane: 0, waiting: thousand, behind: thousand, parked: thousand, lease: undefined },
    ])
  })

  it('a list that takes too long ends in time, and says that it is partial', async () => {
    const blocker = await pool.connect()
    const other = new pg.Pool({ connectionString: database.url, max: 2 })
    try {
      await blocker.query('begin')
      await blocker.query('lock table latchkey.due in access exclusive mode')
      const { admin } = postgresStore({ pool: other })
      const beganAt = performance.now()
      expect(await admin.work({ kind: 'unknown', limit: 10 })).toEqual({ rows: [], next: undefined, partial: true })
      expect(performance.now() - beganAt).toBeGreaterThan(1_500)
      await blocker.query('lock table latchkey.outbox_lanes in access exclusive mode')
      expect(await admin.lanes()).toEqual({ lanes: [], partial: true })
    } finally {
      await blocker.query('rollback')
      blocker.release()
      await other.end()
    }
  })
})

function nodesOf(node: PlanNode): readonly PlanNode[] {
  return [node, ...(node.Plans ?? []).flatMap(nodesOf)]
}
