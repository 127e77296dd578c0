import { afterAll, beforeAll, expect, it } from 'vitest'
import pg from 'pg'
import { describePostgres } from '../../../../../../test/servers/describe-postgres.ts'
import type { Quotas } from '../../../ports/faculties/quotas.ts'
import { postgresStore } from '../index.ts'
import { dialect } from '../sql/names.ts'
import { openKeysStatement, storedBytesStatement } from './index.ts'

/** Rows with an answer of sixty bytes: twenty thousand of many tenants, as many of `busy`, and a hundred and twenty thousand of `huge`. */
const fill = `
  insert into latchkey.keys (id, claim_id, fence, created_at, expires_at, completed_at, attempts, crashes, state, recovery, fingerprint, scope, operation, outcome)
  select gen_random_uuid(), gen_random_uuid(), 1, now(), now() + interval '1 day', now(), 1, 0, 2, 0, decode(repeat('ab', 33), 'hex'),
    case when n <= 20000 then 'tenant-' || n % 500 when n <= 40000 then 'busy' else 'huge' end, 'payments.create', decode(repeat('00', 60), 'hex')
  from generate_series(1, 160000) n`

/** Another scope whose rows have the same entry in the index as those of `rare`, and five open rows of it; `rare` has two. */
const neighbours = `
  with neighbour as (
    select 'near-' || n as scope from generate_series(1, 100000) n
    where (hashtext(('near-' || n) collate "C") & 255) = (hashtext('rare' collate "C") & 255) limit 1
  )
  insert into latchkey.keys (id, claim_id, fence, created_at, expires_at, locked_until, attempts, crashes, state, recovery, fingerprint, scope, operation)
  select gen_random_uuid(), gen_random_uuid(), 1, now(), now() + interval '1 day', now() + interval '1 hour', 1, 0, 1, 0, decode(repeat('ab', 33), 'hex'),
    case when n <= 2 then 'rare' else (select scope from neighbour) end, 'payments.create'
  from generate_series(1, 7) n
  returning scope`

interface PlanNode {
  readonly 'Node Type': string
  readonly 'Index Name'?: string
  readonly 'Actual Rows': number
  readonly Plans?: readonly PlanNode[]
}

describePostgres('what a scope has stored, among the rows of five hundred', database => {
  let pool: pg.Pool
  let quotas: Quotas
  let neighbour: string

  beforeAll(async () => {
    pool = new pg.Pool({ connectionString: database.url, max: 2 })
    const store = postgresStore({ pool })
    await store.migrate()
    if (store.quotas === undefined) throw new Error('the store has quotas')
    quotas = store.quotas
    await pool.query(fill)
    const { rows } = await pool.query<{ scope: string }>(neighbours)
    neighbour = rows.map(({ scope }) => scope).find(scope => scope !== 'rare') ?? ''
    await pool.query('vacuum analyze latchkey.keys')
  })
  afterAll(() => pool.end())

  const sql = dialect('latchkey')
  async function nodesOf(text: string, values: readonly unknown[]): Promise<readonly PlanNode[]> {
    const { rows } = await pool.query<{ 'QUERY PLAN': [{ Plan: PlanNode }] }>(
      `explain (analyze, format json) ${text}`,
      [...values],
    )
    const flat = (node: PlanNode): PlanNode[] => [node, ...(node.Plans ?? []).flatMap(flat)]
    return rows.flatMap(row => flat(row['QUERY PLAN'][0].Plan))
  }

  it.each([
    ['open keys', openKeysStatement(sql), ['tenant-7', null, 101]],
    ['stored bytes', storedBytesStatement(sql), ['tenant-7', null]],
  ])('is found for %s through the index of its scope', async (_, text, values) => {
    const nodes = await nodesOf(text, values)
    expect(nodes.map(node => node['Index Name'])).toContain('keys_scope')
    expect(nodes.map(node => node['Node Type'])).not.toContain('Seq Scan')
  })

  it.each([
    ['open keys', openKeysStatement(sql), ['huge', null, 101]],
    ['stored bytes', storedBytesStatement(sql), ['huge', null]],
  ])('reads a hundred thousand rows at most for %s, however many there are', async (_, text, values) => {
    const rows = (await nodesOf(text, values)).map(node => node['Actual Rows'])
    expect(Math.max(...rows)).toBe(100_000)
  })

  it('is that of the scope alone, also where another one has the same entry', async () => {
    expect(neighbour).toMatch(/^near-/)
    expect(await quotas.openKeys({ scope: 'rare', max: 100 })).toBe(2)
    expect(await quotas.openKeys({ scope: neighbour, max: 100 })).toBe(5)
    expect(await quotas.openKeys({ scope: neighbour, max: 3 })).toBe(3)
  })

  it('is estimated from ten thousand rows where there are more', async () => {
    expect(await quotas.storedBytes({ scope: 'tenant-7' })).toBe(40 * 60)
    expect(await quotas.storedBytes({ scope: 'busy' })).toBe(20_000 * 60)
    expect(await quotas.storedBytes({ scope: 'busy', operation: 'other' })).toBe(0)
  })
})
