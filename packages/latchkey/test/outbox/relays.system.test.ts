import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import pg from 'pg'
import { forkProgram } from '../../../../test/programs/program.ts'
import { describePostgres } from '../../../../test/servers/describe-postgres.ts'
import { postgresStore, type PostgresStore } from '../../src/stores/postgres/index.ts'
import type { RelayArgument } from './relay-process.ts'

const leaseMs = 2_000
const aggregates = Array.from({ length: 24 }, (_, index) => `order-${index}`)
const perAggregate = 20

describePostgres('four relay processes on one PostgreSQL', database => {
  let pool: pg.Pool
  let store: PostgresStore<pg.PoolClient>
  let consumer: Consumer
  const relays: ChildProcess[] = []

  beforeAll(async () => {
    pool = new pg.Pool({ connectionString: database.url, max: 5 })
    // The database is dropped by force when the suite ends, while the last idle connections may still be open.
    pool.on('error', () => {})
    store = postgresStore({ pool })
    await store.migrate()
    consumer = await startConsumer()
  })
  afterAll(async () => {
    await Promise.all(relays.map(stop))
    consumer.server.closeAllConnections()
    consumer.server.close()
    await pool.end()
  })

  async function append(client: pg.PoolClient, aggregate: string, turn: number): Promise<void> {
    const payload = Buffer.from(JSON.stringify({ aggregate, turn }))
    const message = { topic: 'orders', aggregate, dedupId: `${aggregate}/${turn}`, payload, headers: {} }
    await store.outbox?.append(client, message)
  }

  async function inTransaction(work: (client: pg.PoolClient) => Promise<void>): Promise<void> {
    const client = await pool.connect()
    await client.query('begin')
    await work(client)
    await client.query('commit')
    client.release()
  }

  it('deliver again what one of them delivered before it was killed, skip nothing and keep every order', async () => {
    const first = await pool.connect()
    await first.query('begin')
    await append(first, 'began first', 1)
    for (let turn = 1; turn <= perAggregate; turn += 1) {
      await inTransaction(async client => {
        for (const aggregate of aggregates) await append(client, aggregate, turn)
      })
    }
    const shared = { database: database.url, consumer: consumer.url, leaseMs }
    for (const dieAfter of [5, undefined, undefined, undefined]) {
      relays.push(await startRelay(dieAfter === undefined ? shared : { ...shared, dieAfter }))
    }
    const [doomed] = relays
    if (doomed === undefined) throw new Error('no relay was started')
    const died = once(doomed, 'exit')
    // An open transaction holds back what was appended after it began: nothing moves yet.
    for (const relay of relays) relay.send('go')
    await delay(200)
    expect(consumer.seen).toEqual([])
    await append(first, 'began first', 2)
    await first.query('commit')
    first.release()

    expect((await died)[1]).toBe('SIGKILL')
    const expected = aggregates.length * perAggregate + 2
    await expect.poll(() => new Set(consumer.seen).size, { timeout: 40_000, interval: 100 }).toBe(expected)
    await expect.poll(async () => (await store.outbox?.lag())?.waiting, { timeout: 20_000 }).toBe(0)

    const copies = consumer.seen.length - expected
    expect(copies).toBeGreaterThanOrEqual(1)
    for (const aggregate of [...aggregates, 'began first']) {
      const turns = firstSeen(consumer.seen, aggregate)
      expect(turns).toEqual([...turns].sort((one, other) => one - other))
      expect(turns).toHaveLength(aggregate === 'began first' ? 2 : perAggregate)
    }
    expect(await store.outbox?.parked({ limit: 10 })).toEqual([])
  }, 120_000)
})

/** The turns of an aggregate, in the order in which the consumer saw each for the first time. */
function firstSeen(seen: readonly string[], aggregate: string): readonly number[] {
  const own = [...new Set(seen)].filter(id => id.startsWith(`${aggregate}/`))
  return own.map(id => Number(id.split('/')[1]))
}

interface Consumer {
  readonly server: Server
  readonly url: string
  readonly seen: string[]
}

/** Slow enough that every relay has something to do when one of them dies. */
async function startConsumer(): Promise<Consumer> {
  const seen: string[] = []
  const server = createServer((request, response) => {
    request.resume()
    request.on('end', () => {
      seen.push(String(request.headers['webhook-id']))
      setTimeout(() => response.end('{}'), 5)
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return { server, seen, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` }
}

async function startRelay(argument: RelayArgument): Promise<ChildProcess> {
  const child = await forkProgram(new URL('./relay-process.ts', import.meta.url), [JSON.stringify(argument)])
  await once(child, 'message')
  return child
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGTERM')
  await exited
}
