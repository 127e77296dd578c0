import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { postgresStore } from 'latchkey/stores/postgres'
import { describePostgres } from '../../../test/servers/describe-postgres.ts'
import type { Invocation } from './instance.ts'
import { invoke, type Platform } from './platform.ts'

const problem = (code: string) => `urn:latchkey:problem:${code}`

describePostgres('a function that its platform ends', database => {
  let pool: pg.Pool
  let provider: Server
  let platform: Platform
  /** The calls that the provider got, each with its key. */
  const calls: string[] = []
  let isSilent = false

  beforeAll(async () => {
    pool = new pg.Pool({ connectionString: database.url, max: 4 })
    await postgresStore({ pool }).migrate()
    await pool.query('create table orders (id serial, sku text); create table payments (charge text)')
    provider = createServer((req, res) => {
      void text(req).then(() => {
        calls.push(`${req.url} ${String(req.headers['idempotency-key'])}`)
        if (!isSilent) res.end('ch_1')
      })
    }).listen(0, '127.0.0.1')
    await once(provider, 'listening')
    const { port } = provider.address() as AddressInfo // it listens on TCP
    platform = { databaseUrl: database.url, providerUrl: `http://127.0.0.1:${port}`, limitMs: 30_000 }
  })
  afterAll(async () => {
    provider.closeAllConnections()
    await new Promise(resolve => provider.close(resolve))
    await pool.end()
  })

  /** Runs one invocation against a provider that hears everything and answers nothing, and ends it before it gives up. */
  async function endedInTheMiddle(invocation: Invocation): Promise<void> {
    calls.length = 0
    isSilent = true
    expect(await invoke({ ...platform, endsMs: 2_000 }, invocation)).toBeUndefined()
    isSilent = false
    expect(calls).toHaveLength(1)
  }

  it('in one transaction leaves nothing behind, and the retry runs', async () => {
    const order = { name: 'createOrder', key: 'order', body: { sku: 'tea' } } as const
    const blocker = await pool.connect()
    await blocker.query('begin; lock table orders')
    expect(await invoke({ ...platform, endsMs: 2_000 }, order)).toBeUndefined()
    await blocker.query('rollback')
    blocker.release()
    expect(await invoke(platform, order)).toMatchObject({ status: 201, replayed: false })
    expect((await pool.query('select sku from orders')).rows).toEqual([{ sku: 'tea' }])
  })

  describe('in steps', () => {
    it('is resumed by the retry, which charges again under the same key', async () => {
      const payment = { name: 'createPayment', key: 'payment', body: { amount: 12 } } as const
      await endedInTheMiddle(payment)
      expect(await invoke(platform, payment)).toMatchObject({ status: 201, body: { charge: 'ch_1' } })
      expect(calls).toEqual([calls[0], calls[0]])
      expect(await invoke(platform, payment)).toMatchObject({ status: 201, replayed: true })
      expect((await pool.query('select charge from payments')).rows).toEqual([{ charge: 'ch_1' }])
    })

    it('is resumed by the scheduled function where no retry comes', async () => {
      const payment = { name: 'createPayment', key: 'forgotten', body: { amount: 12 } } as const
      await endedInTheMiddle(payment)
      // As on a schedule: the first run may come before the lease has run out.
      for (let times = 0; times < 4 && calls.length < 2; times++) {
        expect(await invoke(platform, { name: 'runWorkers', key: '', body: {} })).toEqual({ status: 200 })
      }
      expect(calls).toEqual([calls[0], calls[0]])
      expect(await invoke(platform, payment)).toMatchObject({ status: 201, replayed: true })
    })
  })

  describe('and that can be neither rolled back nor repeated', () => {
    const letter = { name: 'sendLetter', body: { to: 'Ann' } } as const

    it('is not run again: the retry waits for the lease and gets 409 outcome-unknown', async () => {
      await endedInTheMiddle({ ...letter, key: 'ended' })
      const retry = await invoke(platform, { ...letter, key: 'ended' })
      expect(retry).toMatchObject({ status: 409, body: { type: problem('outcome-unknown') } })
      expect(calls).toHaveLength(1)
    })

    it('answers 504 before the limit, because holdMsMax ends the call, and stores that it is unknown', async () => {
      calls.length = 0
      isSilent = true
      const told = { ...platform, limitMs: 6_000 }
      const first = await invoke(told, { ...letter, key: 'held' })
      expect(first).toMatchObject({ status: 504, body: { type: problem('outcome-unknown') } })
      expect((await pool.query("select state from latchkey.keys where operation = 'letters.send'")).rows).toHaveLength(
        2,
      )
      expect(await invoke(told, { ...letter, key: 'held' })).toMatchObject({ status: 409 })
      expect(calls).toHaveLength(1)
    })
  })
})
