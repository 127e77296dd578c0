/** PostgreSQL with a cache in front: what a request costs the database, through the engine. */
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import type { Redis } from 'ioredis'
import pg from 'pg'
import { createLatchkey, type EncryptionOptions, isLatchkeyError, json, type Latchkey } from 'latchkey'
import { createWorkers } from 'latchkey/workers'
import { describePostgres } from '../../../../../test/servers/describe-postgres.ts'
import { describeRedis } from '../../../../../test/servers/redis/describe-redis.ts'
import { countStatements } from '../../../test/postgres/count-statements.ts'
import { openIoredis } from '../../../test/redis/clients.ts'
import { act, ownPrefix, pause, waitFor } from '../../../test/tiered/fixture.ts'
import { fromAToB, underA, underB } from '../../../test/sealed/keys.ts'
import { silentTelemetry } from '../../ports/telemetry.ts'
import { type PostgresStore, postgresStore } from '../postgres/index.ts'
import { periodMs } from './cache/periods.ts'
import { type Tiered, tieredStore } from './index.ts'

type Store = PostgresStore<pg.PoolClient> & Tiered

describeRedis('PostgreSQL with a cache in front', own =>
  describePostgres('of it', database => {
    let pool: pg.Pool
    let statements: { count: number }
    let cache: Redis
    let prefix: string
    let store: Store
    let latchkey: Latchkey<pg.PoolClient, unknown>
    const closing: (() => Promise<unknown>)[] = []
    const given = () => ({ store, scope: () => 'acme', telemetry: silentTelemetry, maintenance: false }) as const

    beforeAll(async () => {
      pool = new pg.Pool({ connectionString: database.url, max: 4 })
      statements = countStatements(pool)
      const opened = await openIoredis(own.server.url)
      cache = opened.client
      closing.push(opened.close, () => pool.end())
      await postgresStore({ pool }).migrate()
    })
    afterAll(async () => {
      for (const close of closing) await close()
    })
    beforeEach(async () => {
      prefix = ownPrefix()
      const operations = ['pay', 'order', 'report']
      store = tieredStore({ store: postgresStore({ pool }), cache, operations, prefix })
      latchkey = createLatchkey<pg.PoolClient, unknown>(given())
    })

    /** What it costs the database from now on, once nothing is under way. */
    async function cost(run: () => Promise<unknown>): Promise<number> {
      const before = statements.count
      await run()
      return statements.count - before
    }

    /** What an answer from the cache costs it. On a busy machine the cache may answer too late, and the database is asked. */
    async function costOfHit(ask: () => Promise<unknown>): Promise<number | undefined> {
      let counted: number | undefined
      await waitFor(async () => {
        const { hits } = store.cacheFigures()
        counted = await cost(ask)
        return store.cacheFigures().hits > hits
      })
      return counted
    }

    /** Asks until an answer is in the cache. */
    const fill = (ask: () => Promise<unknown>) =>
      waitFor(async () => {
        await ask()
        return store.cacheFigures().hits > 0
      })

    let keys = 0
    const request = (input: unknown = { amount: 7 }) => ({ scope: 'acme', key: `k${keys}`, input })
    beforeEach(() => void (keys += 1))

    it('replays a guarded operation without a statement, and refuses another input under its key without one', async () => {
      let runs = 0
      const pay = latchkey.guarded('pay', { onFailure: 'hold' })
      const ask = (input?: unknown) => pay.runDetailed(request(input), async () => ({ run: (runs += 1) }))
      expect(await ask()).toMatchObject({ replayed: false })
      await fill(ask)
      const replayed = async () => expect(await ask()).toMatchObject({ replayed: true, value: { run: 1 } })
      expect(await costOfHit(replayed)).toBe(0)
      const refused = async () =>
        expect(await ask({ amount: 8 }).catch((error: unknown) => isLatchkeyError(error, 'key-reused'))).toBe(true)
      expect(await costOfHit(refused)).toBe(0)
      expect(runs).toBe(1)
    })

    it('replays an atomic operation without opening a transaction', async () => {
      let runs = 0
      const order = latchkey.atomic('order')
      const ask = () => order.run(request(), async ({ tx }) => (await tx.query('select 1'), { run: (runs += 1) }))
      expect(await ask()).toEqual({ run: 1 })
      await fill(ask)
      expect(await costOfHit(async () => expect(await ask()).toEqual({ run: 1 }))).toBe(0)
      // Of many at once the first of a period is looked up in the cache, and the others meanwhile in the database.
      await waitFor(async () => (await cost(() => Promise.all(Array.from({ length: 50 }, ask)))) === 0)
      expect(runs).toBe(1)
    })

    it('answers in a transaction of the caller from the database', async () => {
      const order = latchkey.atomic('order')
      const ask = (tx?: pg.PoolClient) => order.run({ ...request(), ...(tx && { tx }) }, async () => 'done')
      await ask()
      await fill(() => ask())
      const client = await pool.connect()
      await client.query('begin')
      const { hits } = store.cacheFigures()
      expect(await ask(client)).toBe('done')
      expect(store.cacheFigures().hits).toBe(hits)
      await client.query('rollback')
      client.release()
    })

    it('stores nothing that a transaction of the caller has seen, which may be older than the ticket', async () => {
      const order = latchkey.atomic('order')
      const ask = (tx: pg.PoolClient) => order.run({ ...request(), tx }, async () => 'done')
      const client = await pool.connect()
      for (const end of ['commit', 'rollback']) {
        await client.query('begin isolation level repeatable read')
        expect(await ask(client)).toBe('done')
        await client.query(end)
        // Longer than a ticket of the first one would last.
        await pause(600)
      }
      client.release()
      expect(store.cacheFigures()).toMatchObject({ hits: 0, fills: 0 })
    })

    it('answers a finished deferred request without a statement', async () => {
      const report = latchkey.deferred('report', { deadlineMs: 3_600_000 }, async () => json(201, { done: true }))
      const ask = () => report.run(request())
      expect(await ask()).toMatchObject({ kind: 'accepted' })
      const workers = createWorkers(latchkey, { resumer: { everyMs: 20 } })
      workers.start()
      await expect.poll(ask, { timeout: 10_000 }).toMatchObject({ kind: 'done' })
      await workers.stop()
      await fill(ask)
      const done = async () => expect(await ask()).toMatchObject({ kind: 'done', value: { done: true } })
      expect(await costOfHit(done)).toBe(0)
    })

    it('runs again what was forgotten, at once and with a new answer', async () => {
      let runs = 0
      const pay = latchkey.guarded('pay', { onFailure: 'hold' })
      const ask = () => pay.run(request(), async () => ({ run: (runs += 1) }))
      await ask()
      await fill(ask)
      const row = { scope: 'acme', operation: 'pay', key: request().key }
      expect(await latchkey.forget(row, act)).toEqual({ kind: 'forgotten' })
      expect(await ask()).toEqual({ run: 2 })
      expect(await ask()).toEqual({ run: 2 })
    })

    it('has answers in the cache as they are in the database: encrypted', async () => {
      const secret = 'a card number of 16 digits'
      const sealed = createLatchkey<pg.PoolClient, unknown>({ ...given(), encryption: underA })
      const pay = sealed.guarded('pay', { onFailure: 'hold', describe: () => secret })
      const ask = () => pay.run(request(), async () => ({ secret }))
      await ask()
      await fill(ask)
      expect(await ask()).toEqual({ secret })
      const stored = await cache.getBuffer((await cache.keys(`${prefix}:*-*`))[0] ?? '')
      expect(stored?.length).toBeGreaterThan(200)
      expect(stored?.includes(secret)).toBe(false)
    })

    it('has nothing in the cache under a key that was thrown away after rewrap', async () => {
      const under = (encryption: EncryptionOptions) =>
        createLatchkey<pg.PoolClient, unknown>({ ...given(), encryption })
      const ask = (by: Latchkey<pg.PoolClient, unknown>) =>
        by.guarded('pay', { onFailure: 'hold', describe: () => 'seven' }).run(request(), async () => 'paid')
      const old = under(underA)
      await ask(old)
      await fill(() => ask(old))
      expect((await under(fromAToB).rewrap()).rewritten).toBeGreaterThan(0)
      // A process that has met it may remember it until its period ends.
      await pause(periodMs)
      const now = under(underB)
      // More than once: on a busy machine the cache may answer too late, and the database is asked.
      for (let times = 0; times < 10; times += 1) {
        expect(await ask(now).catch(String)).toBe('paid')
        await pause(20)
      }
    })

    it('has nothing of a tenant any more when it is erased', async () => {
      let runs = 0
      const pay = latchkey.guarded('pay', { onFailure: 'hold' })
      const ask = () => pay.run(request(), async () => ({ run: (runs += 1) }))
      await ask()
      await fill(ask)
      expect((await latchkey.erase({ scope: 'acme' })).rows).toBeGreaterThan(0)
      expect(await ask()).toEqual({ run: 2 })
    })

    it('goes through the cache with an audit trail as well, and records each end once', async () => {
      const audited = createLatchkey<pg.PoolClient, unknown>({ ...given(), audit: { records: 'changes' } })
      const pay = audited.guarded('pay', { onFailure: 'hold' })
      const ask = () => pay.run(request(), async () => 'paid')
      await ask()
      await fill(ask)
      expect(await costOfHit(ask)).toBe(0)
      const id = audited.identify({ scope: 'acme', operation: 'pay', key: request().key })
      const { lines } = await audited.auditRecords({ id })
      expect(lines.map(({ what }) => what)).toEqual(['completed'])
    })
  }),
)
