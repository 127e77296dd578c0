import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { Queue } from 'bullmq'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { createLatchkey, silentTelemetry, singleTenant } from 'latchkey'
import { parkedMessages } from 'latchkey/inbox'
import { postgresStore } from 'latchkey/stores/postgres'
import { describePostgres } from '../../../test/servers/describe-postgres.ts'
import { describeRedis } from '../../../test/servers/redis/describe-redis.ts'
import type { Order } from '../src/bullmq.ts'

const limitMs = 120_000

describeRedis('the BullMQ worker of the guide', redis => {
  describePostgres('on PostgreSQL', database => {
    let pool: pg.Pool
    let queue: Queue<Order>
    const children: ChildProcess[] = []

    beforeAll(async () => {
      pool = new pg.Pool({ connectionString: database.url, max: 4 })
      await postgresStore({ pool }).migrate()
      await pool.query('create table ledger (order_id text not null, amount integer not null check (amount > 0))')
      queue = new Queue<Order>('orders', { connection: { url: redis.server.url } })
    })
    afterEach(async () => {
      for (const child of children.splice(0)) await kill(child)
    })
    afterAll(async () => {
      await queue.close()
      await pool.end()
    })

    async function start(dieAt?: string): Promise<ChildProcess> {
      const env = { ...process.env, DATABASE_URL: database.url, REDIS_URL: redis.server.url }
      const child = fork(fileURLToPath(new URL('./worker.ts', import.meta.url)), [], {
        execArgv: ['--import', 'tsx', '--conditions=latchkey-source'],
        env: dieAt === undefined ? env : { ...env, DIE_AT: dieAt },
      })
      children.push(child)
      await once(child, 'message')
      return child
    }

    async function booked(order: string): Promise<number> {
      return (await pool.query('select from ledger where order_id = $1', [order])).rowCount ?? 0
    }

    async function untilIdle(): Promise<void> {
      await expect
        .poll(() => queue.getJobCountByTypes('wait', 'active', 'delayed'), { timeout: limitMs, interval: 200 })
        .toBe(0)
    }

    it(
      'books an order once that was added twice',
      async () => {
        await Promise.all([start(), start()])
        const job: Order = { id: 'twice', order: 'twice', amount: 1 }
        await queue.addBulk([
          { name: 'placed', data: job },
          { name: 'placed', data: job },
        ])
        await untilIdle()
        expect(await booked('twice')).toBe(1)
        expect(await queue.getJobCountByTypes('failed')).toBe(0)
      },
      limitMs,
    )

    it.each(['atomic:before-commit', 'atomic:after-commit'])(
      'books an order once whose worker is killed at %s',
      async dieAt => {
        const victim = await start(dieAt)
        const exited = once(victim, 'exit')
        await queue.add('placed', { id: dieAt, order: dieAt, amount: 1 })
        expect(await exited).toEqual([null, 'SIGKILL'])
        await start()
        await untilIdle()
        expect(await booked(dieAt)).toBe(1)
      },
      limitMs,
    )

    it(
      'parks an order that cannot be booked and one without an id, books the next, and runs what an operator marks',
      async () => {
        await start()
        await queue.add('placed', { id: 'poison', order: 'poison', amount: -1 })
        await queue.add('placed', { order: 'keyless', amount: 1 })
        await queue.add('placed', { id: 'next', order: 'next', amount: 1 })
        await untilIdle()
        expect([await booked('poison'), await booked('keyless'), await booked('next')]).toEqual([0, 0, 1])
        const store = postgresStore({ pool })
        const latchkey = createLatchkey({ store, scope: singleTenant, telemetry: silentTelemetry })
        const parked = parkedMessages(latchkey)
        const { messages } = await parked.list({ consumer: 'billing' })
        expect(messages.map(({ cause }) => cause).toSorted()).toEqual(['attempts', 'missing-key'])
        const keyless = messages.find(({ cause }) => cause === 'missing-key')
        await parked.redrive(keyless?.id ?? '', { by: 'on-call', reason: 'the shop confirmed it' }, { as: 'keyless' })
        await expect.poll(() => booked('keyless'), { timeout: limitMs }).toBe(1)
        await latchkey.close()
      },
      limitMs,
    )

    it(
      'ends when it is asked to',
      async () => {
        const child = await start()
        const exited = once(child, 'exit')
        child.send('close')
        expect(await exited).toEqual([0, null])
      },
      limitMs,
    )
  })
})

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGKILL')
  await exited
}
