import { afterAll, beforeAll, expect, it } from 'vitest'
import pg from 'pg'
import { describePostgres } from '../../../../../../test/servers/describe-postgres.ts'
import { postgresStore } from '../index.ts'
import { dialect } from '../sql/names.ts'
import { listStatement } from './operator.ts'

/** Small completed rows of many tenants that came in turn, as a shared table holds them; `rare` has seven of them, close together. */
const fill = `
  insert into latchkey.keys (id, claim_id, fence, created_at, expires_at, completed_at, attempts, crashes, state, recovery, fingerprint, scope, operation, outcome)
  select gen_random_uuid(), gen_random_uuid(), 1, now(), now() + interval '1 day', now(), 1, 0, 2, 0, decode(repeat('ab', 33), 'hex'),
    case when n between 20001 and 20007 then 'rare' else 'tenant-' || n % 500 end, 'payments.create', decode(repeat('00', 60), 'hex')
  from generate_series(1, 60000) n`

describePostgres('the rows of one scope, among those of five hundred', database => {
  let pool: pg.Pool
  beforeAll(async () => {
    pool = new pg.Pool({ connectionString: database.url, max: 2 })
    await postgresStore({ pool }).migrate()
    await pool.query(fill)
    await pool.query('vacuum analyze latchkey.keys')
  })
  afterAll(() => pool.end())

  it('are found through it, without reading the rest of the table', async () => {
    const store = postgresStore({ pool })
    const { records } = await store.list({ limit: 100, scope: 'rare' })
    expect(records.map(({ scope }) => scope)).toEqual(Array.from({ length: 7 }, () => 'rare'))
    const text = `explain ${listStatement(dialect('latchkey'), { limit: 100, scope: 'rare' })}`
    const { rows } = await pool.query<{ 'QUERY PLAN': string }>(text, [null, null, null, 101, 'rare'])
    const plan = rows.map(row => row['QUERY PLAN']).join('\n')
    expect(plan).toMatch(/Scan (using|on) keys_scope/)
    expect(plan).not.toMatch(/Seq Scan/)
  })

  it('have an index that takes at most eleven bytes a row, however many scopes there are', async () => {
    const bytesPerRow = async () => {
      const { rows } = await pool.query<{ bytes: string }>(
        `select pg_relation_size('latchkey.keys_scope')::real / count(*) as bytes from latchkey.keys`,
      )
      return Number(rows[0]?.bytes)
    }
    expect(await bytesPerRow()).toBeLessThanOrEqual(11)
    await pool.query(`update latchkey.keys set scope = id::text where scope <> 'rare'`)
    await pool.query('vacuum latchkey.keys')
    await pool.query('reindex index latchkey.keys_scope')
    expect(await bytesPerRow()).toBeLessThanOrEqual(11)
  })
})
