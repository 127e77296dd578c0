import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, expect, it } from 'vitest'
import pg from 'pg'
import { describePostgres } from '../../../../../../test/servers/describe-postgres.ts'
import { type Column, float8s, texts, uuids } from '../sql/columns.ts'
import { type Answered, type Batch, prepared, preparedForMany, preparedForOne, sessions } from './prepared.ts'
import { openSender, type Send } from './batch-sender.ts'
import { shareOf } from './pool-share.ts'

interface Item {
  readonly id: string
  readonly price: number
  readonly note: string | null
}

const columns: readonly Column<Item>[] = [uuids(item => item.id), float8s(item => item.price), texts(item => item.note)]
const echo = preparedForMany(
  prepared(
    'test',
    'select a.id, a.price, a.note from unnest($1::uuid[], $2::float8[], $3::text[]) a (id, price, note)',
  ),
  columns,
)
const echoOne = preparedForOne(prepared('test', 'select $1::uuid, $2::float8, $3::text'), columns)
const lastItem: Item = { id: randomUUID(), price: -1e300, note: null }
const items: readonly Item[] = [{ id: randomUUID(), price: 0.5, note: 'é, "quoted" and \\' }, lastItem]
/** Numbers are text, or what the driver made of it. */
const told = (rows: readonly (readonly unknown[])[]) =>
  rows.map(([id, price, note]) => ({ id, price: Number(price), note }))

async function one(send: Send, batch: Batch): Promise<Answered> {
  const [sent] = await send([batch])
  if (sent?.kind === 'answered') return sent.answer
  throw sent?.error ?? new Error('nothing was sent')
}

describePostgres('a sender', database => {
  const pools: pg.Pool[] = []
  afterEach(async () => {
    for (const pool of pools.splice(0)) await pool.end()
  })

  function open(options: pg.PoolConfig = {}): { readonly pool: pg.Pool; readonly send: Send } {
    const pool = new pg.Pool({ connectionString: database.url, max: 4, ...options })
    pool.on('error', () => {})
    pools.push(pool)
    return { pool, send: openSender({ pool, schema: '"latchkey"', sessions: sessions(), limitMs: 2_000 }) }
  }

  it('sends every item as it is, prepared once, for many and for one', async () => {
    const { pool, send } = open()
    for (let n = 0; n < 3; n += 1) {
      expect(told((await one(send, echo(items))).rows)).toEqual(items)
      expect(told((await one(send, echoOne(lastItem))).rows)).toEqual([lastItem])
    }
    await pause(200)
    const { rows } = await pool.query('select statement from pg_prepared_statements order by statement')
    expect(rows.map(({ statement }) => statement)).toEqual(
      [echoOne(lastItem), echo(items)].map(each => each.statement.text),
    )
  })

  it('counts what a statement wrote', async () => {
    const { pool, send } = open()
    await pool.query('create table written (id uuid)')
    const write = preparedForMany<Item>(
      prepared('test', 'insert into written select unnest($1::uuid[])'),
      columns.slice(0, 1),
    )
    expect(await one(send, write(items))).toEqual({ command: 'INSERT 0 2', rows: [], count: 2 })
  })

  it('sends batches together as one transaction', async () => {
    const { pool, send } = open()
    await pool.query('create table together (id uuid primary key)')
    const write = preparedForMany<Item>(
      prepared('test', 'insert into together select unnest($1::uuid[])'),
      columns.slice(0, 1),
    )
    const both = await send([echo(items), write(items)])
    expect(both).toMatchObject([
      { kind: 'answered', answer: { count: 2 } },
      { kind: 'answered', answer: { rows: [], count: 2 } },
    ])
    const other = { ...lastItem, id: randomUUID() }
    // The second repeats a key, so that the first is not written either.
    const refused = await send([write([other]), write(items)])
    expect(refused).toMatchObject([
      { kind: 'failed', error: { cause: { code: '23505' } } },
      { kind: 'failed', error: { cause: { code: '23505' } } },
    ])
    expect((await pool.query('select from together')).rowCount).toBe(2)
  })

  it('sends through the driver where that takes no messages of ours', async () => {
    // A client that sends queries ahead of their turn takes none but its own. The types do not know the option yet.
    const { send } = open({ pipeline: true } as pg.PoolConfig)
    expect(told((await one(send, echo(items))).rows)).toEqual(items)
    expect(told((await one(send, echoOne(lastItem))).rows)).toEqual([lastItem])
  })

  it('stays on one connection, and gives it back when it has nothing to send', async () => {
    const { pool, send } = open()
    let checkouts = 0
    pool.on('acquire', () => void (checkouts += 1))
    for (let n = 0; n < 20; n += 1) await one(send, echo(items))
    expect(checkouts).toBeLessThan(20)
    expect(pool.idleCount).toBe(0)
    await expect.poll(() => pool.idleCount).toBe(1)
  })

  it('gives way to others that wait for the pool', async () => {
    const { pool, send } = open({ max: 1 })
    let isOver = false
    const sending = (async () => {
      while (!isOver) await one(send, echo(items))
    })()
    const served = async () => {
      for (let n = 0; n < 10; n += 1) await pool.query('select 1')
      return 'served'
    }
    const others = served()
    const first = await Promise.race([others, pause(5_000, 'not served')])
    isOver = true
    await Promise.all([sending, others])
    expect(first).toBe('served')
  })

  it('takes another connection while its own is busy', async () => {
    const { send } = open()
    const slow = preparedForMany<Item>(
      prepared('test', 'select pg_sleep(0.3), unnest($1::uuid[])'),
      columns.slice(0, 1),
    )
    const order: string[] = []
    await Promise.all([
      one(send, slow(items)).then(() => order.push('slow')),
      one(send, echo(items)).then(() => order.push('quick')),
    ])
    expect(order).toEqual(['quick', 'slow'])
  })

  it('keeps a quarter of the pool with its likes, and no more', () => {
    const { pool } = open({ max: 8 })
    const share = shareOf(pool)
    expect([share.tryKeep(), share.tryKeep(), share.tryKeep()]).toEqual([true, true, false])
    share.unkeep()
    expect(share.tryKeep()).toBe(true)
  })

  it('is not failed by a connection that broke while it was kept', async () => {
    const { pool, send } = open()
    // From outside, and connected before: the sender does not keep its connection for long.
    const killer = new pg.Client({ connectionString: database.url })
    await killer.connect()
    const pid = preparedForMany<Item>(
      prepared('test', 'select pg_backend_pid(), unnest($1::uuid[])'),
      columns.slice(0, 1),
    )
    for (let round = 0; round < 5; round += 1) {
      const ended = new Promise(resolve => pool.once('remove', resolve))
      const broken = new Promise(resolve => pool.once('acquire', client => client.once('error', resolve)))
      const { rows } = await one(send, pid(items))
      await killer.query('select pg_terminate_backend($1)', [Number(rows[0]?.[0])])
      await Promise.race([broken, ended])
      expect(await one(send, echo(items)).then(answer => told(answer.rows), String)).toEqual(items)
      await pause(30)
    }
    await killer.end()
  })

  it('tells what the server refused, and goes on with the connection', async () => {
    const { pool, send } = open()
    const wrong = preparedForMany<Item>(
      prepared('test', 'select 1 / (a.price * 0)::int from unnest($1::uuid[], $2::float8[]) a (id, price)'),
      [...columns.slice(0, 2)],
    )
    await expect(one(send, wrong(items))).rejects.toMatchObject({ code: 'store-unavailable', cause: { code: '22012' } })
    expect(told((await one(send, echo(items))).rows)).toEqual(items)
    expect(pool.totalCount).toBe(1)
  })

  it('stops the timer of a pool that limits its queries', async () => {
    const { pool, send } = open({ query_timeout: 150 })
    await one(send, echo(items))
    await pause(300)
    expect(told((await one(send, echo(items))).rows)).toEqual(items)
    expect(pool.totalCount).toBe(1)
    const slow = preparedForMany<Item>(prepared('test', 'select pg_sleep(1), unnest($1::uuid[])'), columns.slice(0, 1))
    await expect(one(send, slow(items))).rejects.toMatchObject({ code: 'store-unavailable' })
  })
})
