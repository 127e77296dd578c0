import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import pg from 'pg'
import { describePostgres } from '../../../../../../test/servers/describe-postgres.ts'
import { startTcpProxy, type TcpProxy } from '../../../../../../test/servers/tcp-proxy.ts'
import { uuidText } from '../../../ports/clock.ts'
import type { Outcome } from '../../../ports/outcome.ts'
import type { AtomicRequest, TransactionEnd, Transactor } from '../../../ports/store.ts'
import { postgresStore, type PostgresStore } from '../index.ts'

describePostgres('atomic operations on PostgreSQL', database => {
  let proxy: TcpProxy
  let pool: pg.Pool
  let wirePool: pg.Pool
  let store: PostgresStore<pg.PoolClient>
  let transactor: Transactor<pg.PoolClient>
  let asked: AtomicRequest
  let keys = 0

  beforeAll(async () => {
    proxy = await startTcpProxy(database.url)
    pool = new pg.Pool({ connectionString: database.url, max: 5 })
    wirePool = new pg.Pool({ connectionString: proxy.through(database.url), max: 5 })
    // The database is dropped by force when the suite ends, which the last idle connections may still live to see.
    for (const each of [pool, wirePool]) each.on('error', () => {})
    store = postgresStore({ pool })
    await store.migrate()
    transactor = transactorOf(pool)
    await pool.query(`create table orders (sku text not null);
      create table tickets (seat text, constraint one_seat unique (seat) deferrable initially deferred)`)
  })
  beforeEach(() => {
    keys += 1
    asked = atomicRequest(keys)
  })
  afterEach(() => pool.query('truncate orders, tickets'))
  afterAll(async () => {
    await Promise.all([pool.end(), wirePool.end()])
    await proxy.close()
  })

  const orders = async () => (await pool.query<{ sku: string }>('select sku from orders')).rows.map(row => row.sku)

  async function untilSomebodyWaits(): Promise<void> {
    const waiting = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
    while ((await pool.query(waiting)).rowCount === 0) await new Promise(resolve => setTimeout(resolve, 10))
  }

  async function order(client: pg.PoolClient, sku: string, through = transactor): Promise<'commit' | 'rollback'> {
    const reserved = await through.reserve(client, asked)
    if (reserved.kind !== 'free') return 'rollback'
    await client.query('insert into orders values ($1)', [sku])
    return (await through.record(client, asked, answer, reserved.fence)) === 'recorded' ? 'commit' : 'rollback'
  }

  it('answers busy at once while another transaction holds the identity', async () => {
    const second = await transactor.transaction(async first => {
      expect((await transactor.reserve(first, asked)).kind).toBe('free')
      let found: string | undefined
      await transactor.transaction(async tx => {
        found = (await transactor.reserve(tx, asked)).kind
        return 'rollback'
      })
      expect(found).toBe('busy')
      return 'rollback'
    })
    expect(second).toEqual({ kind: 'rolled-back' })
  })

  it('does not confuse two identities that share no bits of the lock', async () => {
    await transactor.transaction(async first => {
      await transactor.reserve(first, asked)
      await transactor.transaction(async tx => {
        expect((await transactor.reserve(tx, atomicRequest(keys + 1_000))).kind).toBe('free')
        return 'rollback'
      })
      return 'rollback'
    })
  })

  it('holds by the primary key alone: without the lock the second waits for the first, and finds the identity taken', async () => {
    let second: Promise<TransactionEnd> | undefined
    const first = await transactor.transaction(async tx => {
      await tx.query('savepoint before_the_lock')
      await transactor.reserve(tx, asked)
      await tx.query('rollback to savepoint before_the_lock')
      await tx.query('insert into orders values ($1)', ['first'])
      await transactor.record(tx, asked, answer, 0)
      second = transactor.transaction(other => order(other, 'second'))
      await untilSomebodyWaits()
      return 'commit'
    })
    expect(first).toEqual({ kind: 'committed' })
    expect(await second).toEqual({ kind: 'rolled-back' })
    expect(await orders()).toEqual(['first'])
  })

  it('finds the identity taken when it was claimed and given up by others since it was reserved', async () => {
    const giveUp = async () => {
      const result = await store.claim({ ...asked, recovery: 'hold', leaseMs: 30_000, expiresInMs: 3_600_000 })
      if (result.kind !== 'won') throw new Error('expected the claim to be granted')
      await store.fail(result.claim, { to: 'failed_retryable', errorCode: 'E', dueInMs: 0 })
    }
    await giveUp()
    const end = await transactor.transaction(async tx => {
      expect(await transactor.reserve(tx, asked)).toEqual({ kind: 'free', fence: 1, from: 'failed_retryable' })
      await giveUp()
      expect(await transactor.record(tx, asked, answer, 1)).toBe('taken')
      return 'rollback'
    })
    expect(end).toEqual({ kind: 'rolled-back' })
  })

  it('reports a conflict when REPEATABLE READ cannot see the winner', async () => {
    const end = await transactor.transaction(async tx => {
      await tx.query('set transaction isolation level repeatable read')
      await tx.query('select 1')
      expect(await transactor.transaction(winner => order(winner, 'winner'))).toEqual({ kind: 'committed' })
      return order(tx, 'loser')
    })
    expect(end.kind).toBe('conflict')
    expect(await orders()).toEqual(['winner'])
    const found = await transactor.readAfterCommit(asked.identity.id, 1_000)
    expect(found?.state).toBe('completed')
  })

  it('reports a deadlock in the business rows as a conflict', async () => {
    await pool.query(`insert into orders values ('x'), ('y')`)
    const lock = (first: string, second: string) =>
      transactor.transaction(async tx => {
        await tx.query(`select from orders where sku = $1 for update`, [first])
        await bothArrived()
        await tx.query(`select from orders where sku = $1 for update`, [second])
        return 'commit'
      })
    const ends = await Promise.all([lock('x', 'y'), lock('y', 'x')])
    expect(ends.map(end => end.kind).sort()).toEqual(['committed', 'conflict'])
  })

  it('passes on a duplicate in the business rows as the error it is', async () => {
    await pool.query('create unique index if not exists one_sku on orders (sku)')
    await pool.query(`insert into orders values ('taken')`)
    await expect(transactor.transaction(tx => order(tx, 'taken'))).rejects.toMatchObject({ constraint: 'one_sku' })
    await pool.query('drop index one_sku')
  })

  it('reports a deferred duplicate, found at COMMIT, as a conflict', async () => {
    await pool.query(`insert into tickets values ('1A')`)
    const end = await transactor.transaction(async tx => {
      await order(tx, 'sku')
      await tx.query(`insert into tickets values ('1A')`)
      return 'commit'
    })
    expect(end.kind).toBe('conflict')
    expect(await orders()).toEqual([])
  })

  it('does not call it committed when an error was swallowed on the way', async () => {
    const end = await transactor.transaction(async tx => {
      await tx.query('insert into orders values ($1)', ['sku'])
      await tx.query('select 1/0').catch(() => {})
      return 'commit'
    })
    expect(end).toEqual({ kind: 'rolled-back' })
    expect(await orders()).toEqual([])
  })

  it('knows of a COMMIT whose reply was lost that it does not know, and finds the row after', async () => {
    const lossy = transactorOf(wirePool)
    const end = await lossy.transaction(async tx => {
      const decision = await order(tx, 'kept', lossy)
      void proxy.cutAt('COMMIT', 'reply')
      return decision
    })
    expect(end.kind).toBe('commit-unknown')
    const found = await lossy.readAfterCommit(asked.identity.id, 10_000)
    expect(found).toMatchObject({ state: 'completed', claimId: asked.claimId, outcome: { status: 201 } })
    expect(await orders()).toEqual(['kept'])
  })

  it('knows as little of a COMMIT that was lost before it arrived, and finds no row after', async () => {
    const lossy = transactorOf(wirePool)
    const end = await lossy.transaction(async tx => {
      const decision = await order(tx, 'gone', lossy)
      void proxy.cutAt('COMMIT', 'request')
      return decision
    })
    expect(end.kind).toBe('commit-unknown')
    expect(await lossy.readAfterCommit(asked.identity.id, 10_000)).toBeUndefined()
    expect(await orders()).toEqual([])
  })

  it('sees what was committed while it waited, also where the database’s default is REPEATABLE READ', async () => {
    const options = '-c default_transaction_isolation=repeatable\\ read'
    const frozen = new pg.Pool({ connectionString: database.url, max: 1, options })
    frozen.on('error', () => {})
    let found: ReturnType<typeof transactor.readAfterCommit> | undefined
    await transactor.transaction(async tx => {
      const decision = await order(tx, 'kept')
      found = transactorOf(frozen).readAfterCommit(asked.identity.id, 10_000)
      await untilSomebodyWaits()
      return decision
    })
    expect(await found).toMatchObject({ state: 'completed', claimId: asked.claimId })
    await frozen.end()
  })

  it('gives up reading after its wait while the old transaction is still open, and says so', async () => {
    await transactor.transaction(async tx => {
      await transactor.reserve(tx, asked)
      await expect(transactor.readAfterCommit(asked.identity.id, 50)).rejects.toMatchObject({
        code: 'store-unavailable',
        message: expect.stringContaining('still open'),
      })
      return 'rollback'
    })
  })

  it('survives a connection that is cut while the handler thinks', async () => {
    const lossy = transactorOf(wirePool)
    const failure = lossy.transaction(async tx => {
      await order(tx, 'gone', lossy)
      const { rows } = await tx.query<{ pid: number }>('select pg_backend_pid() as pid')
      // Listening first: the cut may be heard of before its cause is answered.
      const cut = new Promise(resolve => tx.once('error', resolve))
      await pool.query('select pg_terminate_backend($1)', [rows[0]?.pid])
      await cut
      await tx.query('select 1')
      return 'commit'
    })
    await expect(failure).rejects.toThrow()
    expect(await orders()).toEqual([])
    expect(await lossy.transaction(tx => order(tx, 'again', lossy))).toEqual({ kind: 'committed' })
  })
})

function transactorOf(pool: pg.Pool): Transactor<pg.PoolClient> {
  const { transactor } = postgresStore({ pool })
  if (transactor === undefined) throw new Error('the postgres store has a transactor')
  return transactor
}

let waiting: (() => void) | undefined

/** Lets two transactions meet at one point. */
function bothArrived(): Promise<void> {
  if (waiting === undefined) return new Promise(resolve => (waiting = resolve))
  waiting()
  waiting = undefined
  return Promise.resolve()
}

const answer: Outcome = { status: 201, headers: [['location', '/orders/1']], body: Buffer.from('{}'), version: 1 }

function atomicRequest(key: number): AtomicRequest {
  const bytes = Buffer.alloc(16)
  bytes.writeUInt32BE(key, 0)
  const claim = Buffer.alloc(16, 0xc1)
  claim.writeUInt32BE(key, 0)
  return {
    identity: { id: uuidText(bytes), scope: 'tenant', operation: 'orders.create' },
    claimId: uuidText(claim),
    fingerprint: Buffer.from('same'),
    retentionMs: 3_600_000,
    description: undefined,
  }
}
