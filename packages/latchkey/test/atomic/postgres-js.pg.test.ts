import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sql as raw } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/postgres-js'
import { describePostgres } from '../../../../test/servers/describe-postgres.ts'
import type { Attempt } from '../../src/engine/answer.ts'
import { engine } from '../../src/engine/internal.ts'
import type { AtomicOperation } from '../../src/engine/operation.ts'
import { postgresStore } from '../../src/stores/postgres/index.ts'
import { answered, eventually, executeRequest, latchkeyOn, operationName, told } from '../engine/fixture.ts'
import { itRunsOneOfMany } from './duplicates.cases.ts'
import { itEndsAtomically } from './endings.cases.ts'
import { everything, nothing } from './fixture.ts'
import { type PostgresJsShop, postgresJsShop, type Tx } from './postgres-js-shop.ts'

describePostgres('an atomic operation on postgres.js', database => itEndsAtomically(() => postgresJsShop(database.url)))

describePostgres('many callers of one atomic operation on postgres.js', database => {
  itRunsOneOfMany(() => postgresJsShop(database.url))
})

describePostgres('the tx of an atomic handler on postgres.js', database => {
  let shop: PostgresJsShop
  let operation: AtomicOperation<unknown>
  beforeAll(async () => {
    // Two connections: one that is not given back shows at once.
    shop = await postgresJsShop(database.url, { max: 2 })
    operation = latchkeyOn(shop.store).atomic(operationName)
  })
  afterAll(() => shop.close())

  const execute = (key: string, work: (tx: Tx) => Promise<unknown>) =>
    operation[engine].execute(executeRequest(key), async ({ tx }): Promise<Attempt> => {
      await work(tx as Tx)
      return answered(201)
    })
  const order = (tx: Pick<Tx, 'unsafe'>, sku: string) => tx.unsafe('insert into orders values ($1)', [sku])
  async function expectHealthy(key: string): Promise<void> {
    for (const round of ['a', 'b', 'c'])
      expect(told(await execute(`${key} ${round}`, async tx => await order(tx, key)))).toBe('executed 201 yes')
    expect(await shop.committed(key)).toMatchObject({ orders: 3 })
  }

  describe.each<[string, (tx: Tx, work: (inner: Pick<Tx, 'unsafe'>) => Promise<unknown>) => Promise<unknown>]>([
    ['begin', (tx, work) => tx.begin(work)],
    ['savepoint', (tx, work) => tx.savepoint('read', work)],
    ['BEGIN and COMMIT as text', asText],
    ['Drizzle', (tx, work) => drizzle(tx).transaction(inner => work(unsafeOf(inner)))],
    ['nested Drizzle', (tx, work) => drizzle(tx).transaction(one => one.transaction(two => work(unsafeOf(two))))],
  ])('takes a transaction of %s inside it', (name, nest) => {
    it('and commits it with the rest', async () => {
      const key = `${name} commits`
      const answer = await execute(key, async tx => {
        await nest(tx, inner => order(inner, key))
        expect(await shop.committed(key)).toEqual(nothing)
      })
      expect(told(answer)).toBe('executed 201 yes')
      expect(await shop.committed(key)).toEqual(everything)
    })

    it('and rolls it back alone, also after an error of the database', async () => {
      const key = `${name} rolls back`
      const answer = await execute(key, async tx => {
        await order(tx, key)
        const failing = nest(tx, async inner => {
          await order(inner, key)
          await inner.unsafe('select 1/0')
        })
        await expect(failing).rejects.toThrow()
      })
      expect(told(answer)).toBe('executed 201 yes')
      expect(await shop.committed(key)).toEqual(everything)
    })
  })

  it.each(['commit', 'rollback', 'begin isolation level serializable', 'select 1; commit'])(
    'refuses what would end it, and nothing is left: %s',
    async text => {
      const answer = await execute(text, async tx => {
        await order(tx, text)
        await tx.unsafe(text)
      })
      expect(told(answer)).toBe('threw not-stored')
      expect(await shop.committed(text)).toEqual(nothing)
      await expectHealthy(`after ${text}`)
    },
  )

  it('refuses what does not belong to a transaction', async () => {
    await execute('foreign', async tx => {
      expect(() => tx.listen('orders', () => {})).toThrow('listen does not belong to a transaction')
      expect(() => tx.begin('isolation level serializable', async () => {})).toThrow('leave the options out')
    })
  })

  it('refuses a query that was made before its end and awaited after it', async () => {
    const made: Promise<unknown>[] = []
    await execute('late', async tx => {
      await order(tx, 'late')
      // Not awaited, so not sent: a query of postgres.js is a promise that begins when it is asked for its result.
      Reflect.set(made, 'query', order(tx, 'too late'))
    })
    await expect(Reflect.get(made, 'query')).rejects.toMatchObject({ code: 'not-a-transaction' })
    expect(await shop.committed('too late')).toEqual(nothing)
    expect(await shop.committed('late')).toEqual(everything)
  })

  it('can be used after a query that postgres.js itself has refused', async () => {
    const answer = await execute('refused by the driver', async tx => {
      // postgres.js takes no undefined, whatever its types say.
      await expect(tx.unsafe('select $1::text', [undefined as unknown as string])).rejects.toThrow('UNDEFINED_VALUE')
      await order(tx, 'refused by the driver')
    })
    expect(told(answer)).toBe('executed 201 yes')
    expect(await shop.committed('refused by the driver')).toEqual(everything)
    await expectHealthy('after the driver')
  })

  it('gives its connection back after a COMMIT that was refused', async () => {
    await shop.sql`create table seats (seat text, unique (seat) deferrable initially deferred)`
    await shop.sql`insert into seats values ('1A')`
    for (let times = 0; times < 3; times += 1) {
      const answer = await execute(`seat ${times}`, tx => tx`insert into seats values ('1A')`.then(() => {}))
      expect(told(answer)).not.toContain('executed 201')
    }
    await expectHealthy('after refusals')
  })

  it('gives its connection back where the first statement is refused, for want of tables', async () => {
    const { transactor } = postgresStore({ sql: shop.sql, schema: 'absent' })
    const { identity, fingerprint } = executeRequest('absent')
    const first = { identity, fingerprint, claimId: crypto.randomUUID(), retentionMs: 1_000, description: undefined }
    for (let times = 0; times < 3; times += 1)
      await expect(transactor?.transaction(async () => 'commit', first)).rejects.toMatchObject({
        code: 'store-not-migrated',
      })
    await expectHealthy('after absent tables')
  })

  it('is not held up by a batch that was given up: the server is asked to cancel it', async () => {
    const store = postgresStore({ sql: shop.sql, batching: { timeoutMs: 300 } })
    await shop.sql.begin(async holder => {
      await holder`lock table latchkey.keys`
      const { identity, fingerprint } = executeRequest('given up')
      const claim = store.claim({
        ...{ identity, fingerprint, claimId: crypto.randomUUID(), recovery: 'hold', description: undefined },
        ...{ leaseMs: 30_000, expiresInMs: 60_000 },
      })
      await expect(claim).rejects.toMatchObject({ code: 'store-unavailable' })
      await eventually(async () => (await holder`select 1 from pg_locks where not granted`).length === 0)
    })
    await expectHealthy('after a lock')
  })

  describe('whose connection breaks', () => {
    const pidOf = async (tx: Tx) => Number((await tx`select pg_backend_pid() as pid`)[0]?.['pid'])
    const terminate = (pid: number) => shop.sql`select pg_terminate_backend(${pid})`

    it('sends nothing more, so that no row is written outside the transaction', async () => {
      const answer = await execute('idle', async tx => {
        await order(tx, 'idle')
        await terminate(await pidOf(tx))
        await eventually(
          async () => (await shop.sql`select 1 from pg_stat_activity where state like 'idle in%'`).length === 0,
        )
        // postgres.js has a new connection in its place by now.
        await Promise.all([shop.sql`select pg_sleep(0.1)`, shop.sql`select pg_sleep(0.1)`])
        await order(tx, 'idle')
      })
      expect(told(answer)).toBe('threw not-stored')
      expect(await shop.committed('idle')).toEqual(nothing)
      await expectHealthy('after idle')
    })

    it('fails the statement that is under way, and the process goes on', async () => {
      const answer = await execute('busy', async tx => {
        const pid = await pidOf(tx)
        await order(tx, 'busy')
        const slow = tx`select pg_sleep(30)`.catch(() => order(tx, 'busy'))
        await Promise.all([slow, terminate(pid)])
      })
      expect(told(answer)).toBe('threw not-stored')
      expect(await shop.committed('busy')).toEqual(nothing)
      await expectHealthy('after busy')
    })
  })
})

async function asText(tx: Tx, work: (inner: Tx) => Promise<unknown>): Promise<void> {
  await tx`begin`
  try {
    await work(tx)
    await tx`commit`
  } catch (error) {
    await tx`rollback`
    throw error
  }
}

/** Drizzle's transaction has no `unsafe`. */
function unsafeOf(tx: { execute(query: ReturnType<typeof raw>): PromiseLike<unknown> }): Pick<Tx, 'unsafe'> {
  const unsafe = (text: string, values: unknown[] = []) => {
    const [head = '', tail = ''] = text.split('$1')
    return Promise.resolve(
      tx.execute(values.length === 0 ? raw.raw(text) : raw`${raw.raw(head)}${values[0]}${raw.raw(tail)}`),
    )
  }
  // The cases await it, and nothing else.
  return { unsafe: unsafe as unknown as Tx['unsafe'] }
}
