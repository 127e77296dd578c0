import { randomBytes, randomUUID } from 'node:crypto'
import { afterAll, afterEach, beforeAll, expect, expectTypeOf, it, vi } from 'vitest'
import pg from 'pg'
import { describePostgres } from '../../../../../test/servers/describe-postgres.ts'
import { uuidText } from '../../ports/clock.ts'
import type { Claim, ClaimRequest } from '../../ports/store.ts'
import { reapStatement } from './keys/reap.ts'
import { sweepStatement } from './keys/sweep.ts'
import { claimStatement } from './keys/claim-sql.ts'
import { readStatement } from './keys/read.ts'
import { dialect } from './sql/names.ts'
import { takeOverValues } from './sql/values.ts'
import { postgresStore, type PostgresStore } from './index.ts'
import { addKeyRules } from '../../../test/postgres/key-rules.ts'

const hourMs = 3_600_000

for (const batching of [true, false]) {
  describePostgres(`the postgres store, batching ${batching}`, database => {
    let pool: pg.Pool
    let store: PostgresStore<pg.PoolClient>

    beforeAll(async () => {
      pool = new pg.Pool({ connectionString: database.url, max: 8 })
      // The database is dropped by force when the suite ends, which the last idle connections may still live to see.
      pool.on('error', () => {})
      store = postgresStore({ pool, batching })
      await store.migrate()
    })
    afterEach(() => vi.useRealTimers())
    afterAll(() => pool.end())

    async function own(over: Partial<ClaimRequest> = {}): Promise<Claim> {
      const result = await store.claim(request(over))
      if (result.kind !== 'won') throw new Error('expected the claim to be granted')
      return result.claim
    }

    it('hands the client type of the pool to handlers', () => {
      expectTypeOf(store).toEqualTypeOf<PostgresStore<pg.PoolClient>>()
      expect(store.traits.connections).toBe(8)
    })

    it('names the cure when its tables are missing', async () => {
      const elsewhere = postgresStore({ pool, schema: 'nowhere' })
      await expect(elsewhere.claim(request())).rejects.toMatchObject({
        code: 'store-not-migrated',
        message: expect.stringMatching(/"nowhere".*store\.migrate\(\)/),
      })
    })

    it('refuses a schema name that is none', () => {
      for (const schema of ['', '1st', 'a"b', 'a.b', 'drop table', 'x'.repeat(64)]) {
        expect(() => postgresStore({ pool, schema })).toThrow(expect.objectContaining({ code: 'misconfigured' }))
      }
    })

    it('fails as unavailable, with the cause, when the server cannot be reached', async () => {
      const nowhere = new pg.Pool({ host: '127.0.0.1', port: 1, max: 1 })
      await expect(postgresStore({ pool: nowhere }).claim(request())).rejects.toMatchObject({
        code: 'store-unavailable',
        cause: { code: 'ECONNREFUSED' },
      })
      await nowhere.end()
    })

    it('keeps a body of 900 KB of random bytes and one of NULs byte for byte', async () => {
      for (const body of [randomBytes(900_000), Buffer.alloc(900_000), Buffer.alloc(0)]) {
        const claim = await own()
        await store.complete(claim, { status: 200, headers: [], body, version: 1 }, hourMs)
        const stored = (await store.read(claim.id))?.outcome?.body
        expect(Buffer.from(stored ?? [1]).equals(body)).toBe(true)
      }
    })

    it('keeps scopes that differ in case, in trailing space or in Unicode form as they are', async () => {
      for (const scope of ['acme', 'ACME', 'acme ', 'caf\u00e9', 'cafe\u0301', "'; drop table keys --", '\u{1f511}']) {
        const { id } = await own({ identity: { id: randomUUID(), scope, operation: scope } })
        expect(await store.read(id)).toMatchObject({ scope, operation: scope })
        const { records } = await store.list({ limit: 10, operation: scope })
        expect(records.map(record => record.id)).toEqual([id])
      }
    })

    it('does not fail over U+0000 in what people read', async () => {
      const claim = await own({ description: 'a\0b' })
      await store.fail(claim, { to: 'failed_retryable', errorCode: 'E\0', dueInMs: 0 })
      expect(await store.read(claim.id)).toMatchObject({ description: 'a\uFFFDb', lastErrorCode: 'E\uFFFD' })
    })

    it('decides by the server’s clock: an application clock an hour off changes nothing', async () => {
      for (const offsetMs of [hourMs, -hourMs]) {
        vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + offsetMs })
        const claim = await own({ leaseMs: 30_000, recovery: 'rerun' })
        vi.useRealTimers()
        const record = await store.read(claim.id)
        expect(record?.leaseLeftMs).toBeGreaterThan(0)
        expect(record?.leaseLeftMs).toBeLessThanOrEqual(30_000)
        vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + offsetMs })
        const second = await store.claim(request({ identity: { ...identity(), id: claim.id } }))
        expect(second.kind).toBe('seen')
        expect(await store.sweep({ limit: 10, id: claim.id })).toEqual([])
        vi.useRealTimers()
      }
    })

    it('waits for nobody and writes nothing to replay', async () => {
      const claim = await own()
      await store.complete(claim, { status: 200, headers: [], body: Buffer.from('done'), version: 1 }, hourMs)
      const physical = async () =>
        (await pool.query('select ctid, xmin, xmax from latchkey.keys where id = $1', [claim.id])).rows
      const before = await physical()
      const again = () => store.claim(request({ identity: { ...identity(), id: claim.id } }))
      expect((await again()).kind).toBe('seen')
      expect(await physical()).toEqual(before)
      const holder = await pool.connect()
      await holder.query('begin')
      await holder.query('select from latchkey.keys where id = $1 for update', [claim.id])
      expect((await again()).kind).toBe('seen')
      await holder.query('update latchkey.keys set attempts = 2 where id = $1', [claim.id])
      expect((await again()).kind).toBe('seen')
      await holder.query('rollback')
      holder.release()
    })

    it('grants once under a default of REPEATABLE READ, too', async () => {
      const strict = new pg.Pool({
        connectionString: database.url,
        max: 8,
        options: '-c default_transaction_isolation=serializable',
      })
      strict.on('error', () => {})
      const strictStore = postgresStore({ pool: strict })
      for (let round = 0; round < 5; round += 1) {
        const id = randomUUID()
        const results = await Promise.all(
          Array.from({ length: 8 }, () => strictStore.claim(request({ identity: { ...identity(), id } }))),
        )
        expect(results.filter(result => result.kind === 'won')).toHaveLength(1)
      }
      await strict.end()
    })

    it('sweeps a row that was granted again long after it was created', async () => {
      const claim = await own({ recovery: 'hold' })
      await store.sweep({ limit: 100 })
      await store.fail(claim, { to: 'failed_retryable', errorCode: 'E', dueInMs: 0 })
      await pool.query(
        `update latchkey.keys set created_at = created_at - interval '1 day', granted_at = granted_at - interval '1 day' where id = $1`,
        [claim.id],
      )
      await store.sweep({ limit: 100 })
      await own({ identity: { ...identity(), id: claim.id }, leaseMs: 0, recovery: 'hold' })
      expect(await store.sweep({ limit: 100 })).toContainEqual(expect.objectContaining({ id: claim.id, to: 'unknown' }))
      const { rows } = await pool.query('select cause from latchkey.due where id = $1', [claim.id])
      expect(rows).toEqual([{ cause: 'lease-expired' }])
    })

    it.each(['small', 'large'])(
      'keeps one %s outcome for an identity, however often it expires and runs again',
      async size => {
        const id = randomUUID()
        const bodyOf = (text: string) => Buffer.from(text.padEnd(size === 'large' ? 5_000 : 10))
        for (const text of ['first', 'second', 'third']) {
          const claim = await own({ identity: { ...identity(), id } })
          await store.complete(claim, { status: 200, headers: [], body: bodyOf(text), version: 1 }, hourMs)
          expect((await store.read(id))?.outcome?.body).toEqual(bodyOf(text))
          await pool.query(`update latchkey.keys set expires_at = clock_timestamp() where id = $1`, [id])
        }
        const { rows } = await pool.query(
          `select (select count(*)::int from latchkey.outcomes where id = $1) as apart, count(outcome)::int as with_key
       from latchkey.keys where id = $1`,
          [id],
        )
        expect(rows).toEqual([{ apart: size === 'large' ? 1 : 0, with_key: size === 'large' ? 0 : 1 }])
        while ((await store.reap({ limit: 10 })) > 0);
        const left = await pool.query('select from latchkey.outcomes where id = $1', [id])
        expect(left.rowCount).toBe(0)
      },
    )

    it('prefers what an older version wrote later to a small outcome that it left behind', async () => {
      const claim = await own()
      await store.complete(claim, { status: 200, headers: [], body: Buffer.from('first'), version: 1 }, hourMs)
      // As a process of the version before does it, which does not know the column: another grant, and its own answer.
      await pool.query(`update latchkey.keys set fence = 2 where id = $1`, [claim.id])
      await pool.query(`insert into latchkey.outcomes values ($1, 2, 201, 1, '[]', 'second')`, [claim.id])
      expect(await store.read(claim.id)).toMatchObject({ outcome: { status: 201, body: Buffer.from('second') } })
      const seen = await store.claim(request({ identity: { ...identity(), id: claim.id } }))
      expect(seen).toMatchObject({ kind: 'seen', record: { outcome: { status: 201 } } })
    })

    it('has rules for the shape of a row, which the tests add to the table', async () => {
      const { id } = await own()
      await pool.query(addKeyRules(dialect('latchkey')))
      for (const change of [
        'locked_until = null',
        'state = 2',
        'state = 3',
        'state = 9',
        'fence = 0',
        'due_at = now()',
      ]) {
        await expect(pool.query(`update latchkey.keys set ${change} where id = $1`, [id])).rejects.toMatchObject({
          code: '23514',
        })
      }
    })
  })
}

describePostgres('the plans of the postgres store', database => {
  let pool: pg.Pool
  const sql = dialect('latchkey')

  beforeAll(async () => {
    pool = new pg.Pool({ connectionString: database.url, max: 2 })
    pool.on('error', () => {})
    await postgresStore({ pool }).migrate()
  })
  afterAll(() => pool.end())

  async function planOf(text: string, values: readonly unknown[]): Promise<string> {
    const { rows } = await pool.query(`explain (costs off) ${text}`, [...values])
    return rows.map(row => row['QUERY PLAN']).join('\n')
  }

  const { identity: asked, claimId, fingerprint } = request()
  const claimValues = [
    ...[asked.id, claimId, fingerprint, 0, 1_000, 2_000, asked.scope, asked.operation, null, null],
    ...takeOverValues({ fence: 1, claimId }),
  ]

  async function expectByIndex(): Promise<void> {
    const claim = await planOf(claimStatement(sql), claimValues)
    expect(claim).toContain('Conflict Arbiter Indexes: keys_pkey')
    expect(claim).toContain('using keys_pkey on keys k')
    const phased = await planOf(claimStatement(sql, 'with journal'), [...claimValues, 1, '{}', null])
    for (const index of ['inputs_pkey', 'steps_pkey', 'waiting_pkey']) expect(phased).toContain(index)
    const replay = await planOf(readStatement(sql), [asked.id])
    expect(replay).toContain('using keys_pkey on keys k')
    expect(replay).toContain('using outcomes_pkey on outcomes o')
    for (const plan of [claim, phased, replay]) expect(plan).not.toContain('Seq Scan')
  }

  it('look up and arbitrate by the primary key while the tables are empty', expectByIndex)

  it('look up and arbitrate by the primary key when the tables are large', async () => {
    await pool.query(`
      insert into latchkey.keys (id, claim_id, fence, created_at, granted_at, completed_at, expires_at, attempts, state,
        recovery, fingerprint, scope, operation)
      select gen_random_uuid(), gen_random_uuid(), 1, now(), now(), now(), now() + interval '1 day', 1, 2, 0, '\\x00', 's', 'o'
      from generate_series(1, 20000);
      insert into latchkey.outcomes (id, fence, status, version, headers, body)
      select id, 1, 200, 1, '[]', '\\x00' from latchkey.keys;
      analyze latchkey.keys, latchkey.outcomes`)
    await expectByIndex()
  })

  it('find expired rows and dead leases among many without reading them all', async () => {
    await pool.query(`select brin_summarize_new_values('latchkey.keys_granted_at')`)
    const reap = await planOf(reapStatement(sql), [100])
    expect(reap).toContain('Index Scan using keys_expires_at on keys k')
    const sweep = await planOf(sweepStatement(sql), [100, Date.now() / 1000 + 3_600])
    expect(sweep).toContain('Bitmap Index Scan on keys_granted_at')
    for (const plan of [reap, sweep]) expect(plan).not.toContain('Seq Scan on keys')
  })

  it('keep a normal life off the indexes: every update is heap-only', async () => {
    const store = postgresStore({ pool })
    await pool.query('truncate latchkey.keys, latchkey.outcomes')
    const client = await pool.connect()
    await client.query(`select pg_stat_reset()`)
    client.release()
    for (let life = 0; life < 20; life += 1) {
      const result = await store.claim(request())
      if (result.kind !== 'won') throw new Error('expected the claim to be granted')
      await store.heartbeat(result.claim, 30_000)
      await store.complete(result.claim, { status: 200, headers: [], body: undefined, version: 1 }, hourMs)
    }
    const updates = async () => {
      const { rows } = await pool.query<{ n: number; hot: number }>(
        `select n_tup_upd::int as n, n_tup_hot_upd::int as hot from pg_stat_user_tables where relname = 'keys'`,
      )
      return rows[0]
    }
    await expect.poll(updates, { timeout: 30_000, interval: 200 }).toEqual({ n: 40, hot: 40 })
  })
})

function identity() {
  return { id: uuidText(randomBytes(16)), scope: 'tenant', operation: 'payments.create' }
}

function request(over: Partial<ClaimRequest> = {}): ClaimRequest {
  return {
    identity: identity(),
    claimId: randomUUID(),
    fingerprint: Buffer.from('same'),
    recovery: 'hold',
    leaseMs: 30_000,
    expiresInMs: 25 * hourMs,
    description: undefined,
    ...over,
  }
}
