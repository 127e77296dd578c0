import pg from 'pg'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { postgresStore } from 'latchkey/stores/postgres'
import { describePostgres } from '../../../test/servers/describe-postgres.ts'
import type * as Example from '../src/sqs.ts'

describePostgres('the SQS handler of the guide', database => {
  let pool: pg.Pool
  let createHandler: typeof Example.createHandler

  beforeAll(async () => {
    pool = new pg.Pool({ connectionString: database.url, max: 2 })
    await postgresStore({ pool }).migrate()
    await pool.query('create table ledger (order_id text not null, amount integer not null check (amount > 0))')
    process.env['DATABASE_URL'] = database.url
    createHandler = (await import('../src/sqs.ts')).createHandler
  })
  afterAll(() => pool.end())

  function record(messageId: string, id: string | undefined, amount: number): Example.SqsRecord {
    return {
      ...{ messageId, receiptHandle: `handle ${messageId}`, eventSourceARN: 'arn:aws:sqs:eu-north-1:1:orders' },
      body: JSON.stringify({ order: id ?? messageId, amount }),
      messageAttributes: id === undefined ? {} : { id: { stringValue: id }, type: { stringValue: 'placed' } },
    }
  }

  async function booked(): Promise<readonly string[]> {
    const { rows } = await pool.query<{ order_id: string }>('select order_id from ledger order by order_id')
    return rows.map(row => row.order_id)
  }

  it('reports of a batch only what must come again, with its delay, and books each order once', async () => {
    const delays: [string, number][] = []
    const handler = createHandler(async ({ messageId }, seconds) => void delays.push([messageId, seconds]))
    const batch = [
      record('m1', 'order-1', 1),
      // Sent again by its producer: another message of SQS, and the same order.
      record('m2', 'order-2', 2),
      record('m3', 'poison', -1),
      record('m4', undefined, 4),
    ]
    expect(await handler({ Records: batch })).toEqual({ batchItemFailures: [{ itemIdentifier: 'm3' }] })
    expect(delays).toEqual([['m3', 2]])
    expect(await handler({ Records: [record('m5', 'order-2', 2), record('m6', 'order-1', 1)] })).toEqual({
      batchItemFailures: [],
    })
    expect(await booked()).toEqual(['order-1', 'order-2'])
  })

  it('books the others of a batch with a body that is no JSON, also when no delay could be set', async () => {
    const logged = vi.spyOn(console, 'error').mockImplementation(() => {})
    const handler = createHandler(() => Promise.reject(new Error('throttled')))
    const broken = { ...record('m7', 'order-7', 7), body: '{"order":' }
    expect(await handler({ Records: [broken, record('m8', 'order-8', 8)] })).toEqual({
      batchItemFailures: [{ itemIdentifier: 'm7' }],
    })
    expect(await booked()).toContain('order-8')
    expect(logged).toHaveBeenCalledOnce()
    logged.mockRestore()
  })
})
