import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { drizzle } from 'drizzle-orm/node-postgres'
import { sql } from 'drizzle-orm'
import pg from 'pg'
import { describePostgres } from '../../../../test/servers/describe-postgres.ts'
import type { Attempt } from '../../src/engine/answer.ts'
import { engine } from '../../src/engine/internal.ts'
import type { Storable } from '../../src/engine/json-of.ts'
import type { AtomicOperation } from '../../src/engine/operation.ts'
import { notExecuted } from '../../src/ports/errors.ts'
import {
  answered,
  eventually,
  executeRequest,
  latchkeyOn,
  operationName,
  recordingTelemetry,
  rowOf,
  runRequest,
  told,
} from '../engine/fixture.ts'
import { everything, nothing, ordering, postgresShop, type Shop } from './fixture.ts'

describePostgres('an atomic handler that ends its transaction itself', database => {
  let shop: Shop & { pool: pg.Pool }
  let operation: AtomicOperation<unknown>
  const telemetry = recordingTelemetry()
  /** The pool's own clients, which no handler is given. */
  const clients = new Map<unknown, pg.PoolClient>()
  beforeAll(async () => {
    shop = await postgresShop(database.url, { max: 3 })
    shop.pool.on('acquire', client => void clients.set(pidOf(client), client))
    operation = latchkeyOn(shop.store, { telemetry }).atomic(operationName)
  })
  afterAll(() => shop.close())

  /** The types of pg do not name it. */
  const pidOf = (client: object): unknown => Reflect.get(client, 'processID')
  /** Past `tx`: the client that it stands for. */
  function clientOf(tx: object): pg.PoolClient {
    const client = clients.get(pidOf(tx))
    if (client === undefined) throw new Error('every client was acquired from the pool')
    return client
  }
  const execute = (key: string, work: (tx: pg.PoolClient) => Promise<Attempt>) =>
    operation[engine].execute(executeRequest(key), async ({ tx }) => {
      await shop.order(tx, key)
      return work(tx as pg.PoolClient)
    })
  async function expectHealthy(): Promise<void> {
    await eventually(() => shop.pool.totalCount === shop.pool.idleCount)
    const key = `healthy-${clients.size}-${Math.random()}`
    expect(told(await execute(key, async () => answered(201)))).toBe('executed 201 yes')
  }

  describe('through its tx', () => {
    it.each(['commit', 'END;', 'rollback', 'begin isolation level serializable', 'select 1; commit'])(
      'is refused by name, and nothing is left: %s',
      async text => {
        let refusal: unknown
        const answer = await execute(text, async tx => {
          await tx.query(text).catch((error: unknown) => (refusal = error))
          throw refusal
        })
        expect(refusal).toMatchObject({ name: 'LatchkeyError', code: 'not-a-transaction' })
        expect(told(answer)).toBe('threw not-stored')
        expect(await shop.committed(text)).toEqual(nothing)
      },
    )

    it('is refused in every form of a query, and the transaction is as it was', async () => {
      const answer = await execute('forms', async tx => {
        const refused = { code: 'not-a-transaction' }
        await expect(tx.query({ text: 'commit', values: [] })).rejects.toMatchObject(refused)
        await expect(tx.query({ name: 'end-it', text: 'commit' })).rejects.toMatchObject(refused)
        const called = [
          new Promise(resolve => tx.query('commit', resolve)),
          new Promise(resolve => tx.query('commit', [], resolve)),
          new Promise(resolve => tx.query({ text: 'commit' }, resolve)),
        ]
        for (const error of await Promise.all(called)) expect(error).toMatchObject(refused)
        expect(() => tx.query(new pg.Query('commit'))).toThrow(expect.objectContaining(refused))
        return answered(201)
      })
      expect(told(answer)).toBe('executed 201 yes')
      expect(await shop.committed('forms')).toEqual(everything)
    })

    it('cannot give the connection back, nor use it once the transaction has ended', async () => {
      let kept: pg.PoolClient | undefined
      const answer = await execute('kept', async tx => {
        kept = tx
        tx.release()
        tx.release(true)
        return answered(201)
      })
      expect(told(answer)).toBe('executed 201 yes')
      await expect(kept?.query('insert into orders values ($1)', ['late'])).rejects.toMatchObject({
        code: 'not-a-transaction',
        message: expect.stringMatching(/has ended/),
      })
      expect(await shop.committed('late')).toEqual(nothing)
      await expectHealthy()
    })
  })

  describe('past its tx', () => {
    const ways: [string, (client: pg.PoolClient) => unknown][] = [
      ['the client', client => client.query('commit')],
      ['several statements', client => client.query('select 1; commit; begin; select 1; rollback')],
      ['another transaction after', client => client.query('commit; begin')],
      ['a chain', client => client.query('commit and chain')],
      ['a query object', client => new Promise(resolve => client.query(new pg.Query('commit', resolve)))],
      ['a query not waited for', client => void client.query('commit')],
    ]
    it.each(ways)('is answered and remembered as committed, by %s', async (name, end) => {
      const answers: string[] = []
      for (let times = 0; times < 3; times += 1) {
        const answer = await execute(name, async tx => {
          await end(clientOf(tx))
          return answered(201)
        })
        answers.push(told(answer))
      }
      expect(answers).toEqual(['executed 201 yes', 'replayed 201', 'replayed 201'])
      expect(await shop.committed(name)).toEqual(everything)
      expect(await rowOf(shop.store, name)).toMatchObject({ state: 'completed', fence: 1, recovery: 'rerun' })
      expect(telemetry.told).toContainEqual([
        'a handler misused its transaction',
        expect.objectContaining({
          error: expect.objectContaining({ message: expect.stringMatching(/\(committed\)/) }),
        }),
      ])
      await expectHealthy()
    })

    const throws: [string, () => Attempt][] = [
      ['a throw', () => ({ kind: 'threw', error: new Error('bug') })],
      ['a thrown 4xx', () => answered(402, 'no funds', new Error('declined'))],
      ['notExecuted', () => ({ kind: 'threw', error: notExecuted('it says') })],
      ['a 500', () => answered(500)],
    ]
    it.each(throws)('is unknown when it committed and ended with %s: nobody runs it again', async (name, end) => {
      const key = `unknown ${name}`
      const first = await execute(key, async tx => {
        await clientOf(tx).query('commit')
        return end()
      })
      expect(first).toMatchObject({ kind: 'refused', refusal: { code: 'outcome-unknown', ownAttempt: true } })
      expect(await shop.committed(key)).toEqual({ orders: 1, keys: 1, outcomes: 0 })
      expect(await rowOf(shop.store, key)).toMatchObject({ state: 'unknown', lastErrorCode: 'committed-by-handler' })
      const retry = ordering(shop, key, () => answered(201))
      expect(told(await operation[engine].execute(executeRequest(key), retry.work))).toBe('refused outcome-unknown')
      expect(retry.calls).toBe(0)
      expect(await shop.committed(key)).toMatchObject({ orders: 1 })
      await expectHealthy()
    })

    it('is a 500 when it rolled back and returned, and nothing is stored', async () => {
      for (const status of [201, 404]) {
        const key = `rolled back ${status}`
        const answer = await execute(key, async tx => {
          await clientOf(tx).query('rollback')
          return answered(status)
        })
        expect(told(answer)).toBe('refused transaction-rolled-back')
        expect(await shop.committed(key)).toEqual(nothing)
      }
      await expectHealthy()
    })

    it('is committed when it rolled ours back and committed another after: something of it is there to stay', async () => {
      const answer = await execute('other', async tx => {
        await clientOf(tx).query('rollback; begin')
        await clientOf(tx).query('insert into orders values ($1)', ['other'])
        await clientOf(tx).query('commit')
        return answered(201)
      })
      expect(told(answer)).toBe('executed 201 yes')
      expect(await shop.committed('other')).toEqual(everything)
    })

    it('is the plain throw that it is when it rolled back and threw', async () => {
      const answer = await execute('rolled back, threw', async tx => {
        await clientOf(tx).query('rollback')
        throw new Error('bug')
      })
      expect(told(answer)).toBe('threw not-stored')
      expect(await shop.committed('rolled back, threw')).toEqual(nothing)
    })
  })

  describe('in a transaction that its caller handed in', () => {
    /** As callers do it: COMMIT after the handler, ROLLBACK after an error. */
    async function inOwn<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
      const client = await shop.pool.connect()
      try {
        await client.query('begin')
        const value = await work(client)
        await client.query('commit')
        return value
      } catch (error) {
        await client.query('rollback')
        throw error
      } finally {
        client.release()
      }
    }
    const run = (key: string, work: (client: pg.PoolClient) => Promise<Storable>) =>
      inOwn(client =>
        operation.run({ ...runRequest(key), tx: client }, async () => {
          await shop.order(client, key)
          return work(client)
        }),
      )

    it('is remembered as completed when a nested transaction committed it', async () => {
      const nested = async (client: pg.PoolClient) => {
        await drizzle(client).transaction(async tx => void (await tx.execute(sql`select 1`)))
        return 'done'
      }
      for (let times = 0; times < 3; times += 1) expect(await run('own nested', nested).catch(String)).toBe('done')
      expect(await shop.committed('own nested')).toEqual(everything)
      expect(await rowOf(shop.store, 'own nested')).toMatchObject({ state: 'completed', fence: 1 })
    })

    it('is unknown when it committed and threw', async () => {
      const thrown = run('own threw', async client => {
        await client.query('commit')
        throw new Error('bug')
      })
      await expect(thrown).rejects.toMatchObject({ code: 'outcome-unknown', cause: { message: 'bug' } })
      expect(await rowOf(shop.store, 'own threw')).toMatchObject({
        state: 'unknown',
        lastErrorCode: 'committed-by-handler',
      })
      expect(await shop.committed('own threw')).toMatchObject({ orders: 1 })
    })

    it('is an error when it rolled back, and nothing is stored', async () => {
      const gone = run('own rolled back', client => client.query('rollback').then(() => 'done'))
      await expect(gone).rejects.toMatchObject({ code: 'transaction-rolled-back' })
      expect(await shop.committed('own rolled back')).toEqual(nothing)
    })

    it('is an error that names savepoints when it swallowed an error, and the caller’s COMMIT keeps nothing', async () => {
      const swallowed = run('own swallowed', client => client.query('select 1/0').catch(() => 'done'))
      await expect(swallowed).rejects.toMatchObject({
        code: 'transaction-rolled-back',
        message: expect.stringMatching(/put a savepoint around/),
      })
      expect(await shop.committed('own swallowed')).toEqual(nothing)
    })

    it('is unknown where a query builder hides how it ended', async () => {
      const hidden = drizzle(shop.pool).transaction(tx =>
        operation.run({ ...runRequest('own hidden'), tx }, async () => {
          await tx.execute(sql`insert into orders values ('own hidden')`)
          await tx.execute(sql`commit`)
          return 'done'
        }),
      )
      await expect(hidden).rejects.toMatchObject({ code: 'outcome-unknown' })
      expect(await rowOf(shop.store, 'own hidden')).toMatchObject({
        state: 'unknown',
        lastErrorCode: 'committed-by-handler',
      })
    })

    it('watches a connection only for as long as the handler has it', async () => {
      const client = await shop.pool.connect()
      const listeners = () => client.connection.listenerCount('commandComplete')
      const before = listeners()
      for (const end of [() => 'done', () => Promise.reject(new Error('bug'))]) {
        await client.query('begin')
        await operation.run({ ...runRequest(`watched ${end}`), tx: client }, end).catch(() => undefined)
        await client.query('rollback')
        expect(listeners()).toBe(before)
      }
      client.release()
    })
  })
})
