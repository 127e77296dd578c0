import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import pg from 'pg'
import { describePostgres } from '../../../../../../test/servers/describe-postgres.ts'
import type { Claim, ClaimRequest } from '../../../ports/store.ts'
import { dialect } from '../sql/names.ts'
import { postgresMigrations, postgresStore, type PostgresStore } from '../index.ts'
import { inTransaction } from '../connection/statement.ts'
import { postgresSteps } from './steps.ts'
import { claimRequest } from '../../../../test/claim-request.ts'

const hourMs = 3_600_000
const act = { by: 'on-call', reason: 'repaired' }
const retry = { to: 'failed_retryable', errorCode: 'E', dueInMs: 0 } as const

describePostgres('phased work in postgres', database => {
  let pool: pg.Pool
  let store: PostgresStore<pg.PoolClient>
  const sql = dialect('latchkey')

  beforeAll(async () => {
    pool = new pg.Pool({ connectionString: database.url, max: 8 })
    // The database is dropped by force when the suite ends, which the last idle connections may still live to see.
    pool.on('error', () => {})
    await postgresStore({ pool }).migrate()
  })
  beforeEach(async () => {
    store = postgresStore({ pool })
    await pool.query('truncate latchkey.keys, latchkey.inputs, latchkey.steps, latchkey.waiting')
  })
  afterAll(() => pool.end())

  async function own(over: Partial<ClaimRequest> = {}): Promise<Claim> {
    const result = await store.claim(request(over))
    if (result.kind !== 'won') throw new Error('expected the claim to be granted')
    return result.claim
  }
  const again = (claim: Claim, over: Partial<ClaimRequest> = {}) =>
    request({ identity: { ...request().identity, id: claim.id }, ...over })
  const charge = { position: 0, name: 'charge', epoch: 0, key: randomUUID(), windowMs: undefined }

  it('takes one round trip to begin, and one more to go on', async () => {
    const sent: string[] = []
    const counting = postgresStore({
      pool: {
        connect: () => pool.connect(),
        query: (text: string, values?: unknown[]) => {
          sent.push(text)
          return pool.query(text, values)
        },
      },
    })
    const first = await counting.claim(request({ leaseMs: 0 }))
    expect([first.kind, sent.length]).toEqual(['won', 1])
    if (first.kind !== 'won') return
    await counting.claim(again(first.claim))
    expect(sent).toHaveLength(3)
    await counting.claim(again(first.claim))
    expect(sent).toHaveLength(4)
  })

  it('never grants by steps that it saw before their owner went on', async () => {
    // Overdue, and between two steps: grantable for whoever looks now.
    const claim = await own({ leaseMs: 0 })
    const holder = await pool.connect()
    await holder.query('begin')
    await holder.query('select from latchkey.keys where id = $1 for update', [claim.id])
    const claiming = store.claim(again(claim))
    await blockedOn(pool)
    // The owner opens an intent, with a lease that is past at once, so that only what was seen of the steps can protect it.
    const steps = postgresSteps(sql, inTransaction(holder, sql.schema))
    expect(await steps.openIntent(claim, charge, 0)).toBe('written')
    await holder.query('commit')
    holder.release()
    expect(await claiming).toMatchObject({ kind: 'seen', record: { state: 'in_progress', fence: 1 } })
  })

  it('leaves no entry among the waiting when nothing waits', async () => {
    const waiting = async () => (await pool.query('select id, parked from latchkey.waiting')).rows
    const failed = await own()
    await store.fail(failed, retry)
    expect(await waiting()).toEqual([{ id: failed.id, parked: false }])
    const parked = await own(again(failed))
    expect(await waiting()).toEqual([])
    await store.park(parked, 'poison')
    expect(await waiting()).toEqual([{ id: failed.id, parked: true }])
    await store.unpark(failed.id, act)
    expect(await waiting()).toEqual([{ id: failed.id, parked: false }])
    await store.release(failed.id, (await own(again(failed))).claimId)
    expect(await waiting()).toHaveLength(1)
    const guarded = await own({ recovery: 'hold' })
    await store.park(guarded, 'poison')
    await store.unpark(guarded.id, act)
    await pool.query('update latchkey.keys set expires_at = clock_timestamp()')
    expect(await store.reap({ limit: 10 })).toBe(2)
    expect(await waiting()).toEqual([])
  })

  it('keeps a normal life off the indexes: every update of a row and of a step is heap-only', async () => {
    // A schema of its own: sessions report what they did late, and other tests work on the same tables.
    store = postgresStore({ pool, schema: 'lives' })
    await store.migrate()
    for (let life = 0; life < 20; life += 1) {
      const claim = await own()
      await store.steps?.openIntent(claim, charge, 30_000)
      await store.steps?.recordResult(claim, { position: 0, value: '1' }, 30_000)
      await store.complete(claim, { status: 200, headers: [], body: undefined, version: 1 }, hourMs)
    }
    const updates = async () =>
      (
        await pool.query(
          `select relname as name, n_tup_upd::int as n, n_tup_hot_upd::int as hot from pg_stat_user_tables
           where schemaname = 'lives' and n_tup_upd > 0 order by 1`,
        )
      ).rows
    await expect.poll(updates, { timeout: 30_000, interval: 200 }).toEqual([
      { name: 'keys', n: 60, hot: 60 },
      { name: 'steps', n: 20, hot: 20 },
    ])
  })

  it('refuses steps of an illegal shape, whoever writes them', async () => {
    const claim = await own()
    await store.steps?.openIntent(claim, charge, 30_000)
    for (const change of [`result = '1'`, 'kind = 0', 'state = 7', 'position = -1', 'opened_at = null']) {
      await expect(pool.query(`update latchkey.steps set ${change}`)).rejects.toMatchObject({ code: '23514' })
    }
  })

  it('goes on with rows and audit of a database from before it knew steps', async () => {
    const [first] = postgresMigrations('old')
    await pool.query(first?.sql ?? '')
    const claim = { id: randomUUID(), fence: 3, claimId: randomUUID() }
    await pool.query(
      `insert into "old".keys (id, claim_id, fence, created_at, granted_at, expires_at, locked_until, attempts, state,
        recovery, fingerprint, scope, operation)
       values ($1, $2, 3, now(), now(), now() + interval '1 day', now() + interval '1 minute', 1, 1, 0, '\\x00', 's', 'o')`,
      [claim.id, claim.claimId],
    )
    await pool.query(
      `insert into "old".audit (key_id, act, actor, reason, detail, at) values ($1, 'settle', 'a', 'b', '', now())`,
      [claim.id],
    )
    const old = postgresStore({ pool, schema: 'old' })
    await old.migrate()
    expect(await old.park(claim, 'poison')).toBe('written')
    expect(await old.unpark(claim.id, act)).toEqual({ kind: 'unparked' })
    const { audit } = await old.inspect(claim.id)
    expect(audit.map(entry => entry.act)).toEqual(['settle', 'unpark'])
  })
})

/** Until a statement waits for a row that another transaction holds. */
async function blockedOn(pool: pg.Pool): Promise<void> {
  const waiting = async () =>
    (await pool.query(`select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`))
      .rowCount
  await expect.poll(waiting, { timeout: 30_000, interval: 20 }).toBeGreaterThan(0)
}

const request = (over: Partial<ClaimRequest> = {}) =>
  claimRequest({ recovery: 'resume', work: { version: 1, input: '{}' }, ...over })
