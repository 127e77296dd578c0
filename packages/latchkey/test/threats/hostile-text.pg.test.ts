/** Text that tries to be SQL, in every place where a caller or an operator may put text. */
import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createLatchkey, type Latchkey, silentTelemetry } from 'latchkey'
import { postgresStore } from 'latchkey/stores/postgres'
import { describePostgres } from '../../../../test/servers/describe-postgres.ts'

const hostile = [
  "'; drop schema latchkey cascade; --",
  '"; drop table latchkey.keys; --',
  "\\'; drop table latchkey.keys; --",
  "E'\\''; drop table latchkey.keys; --",
  '$$; drop table latchkey.keys; $$',
  "') returning id; delete from latchkey.keys; --",
  "acme' or '1'='1",
  '1) or (1=1',
  '$1',
  '%s %I %L',
  '{acme,"globex"}',
  '{}',
  'NULL',
  '\\x00',
  '\\N',
  'a,b\tc\nd\r\n',
  '/* latchkey',
  '\u2028\u2029\u{1f511}',
]

/** A client that sends queries ahead of their turn takes no messages of ours: statements with their values in them are sent in their place. */
const ways: readonly (readonly [string, { readonly batching: boolean; readonly pool: pg.PoolConfig }])[] = [
  ['in batches', { batching: true, pool: {} }],
  ['one by one', { batching: false, pool: {} }],
  // The types do not know the option yet.
  ['as text', { batching: true, pool: { pipeline: true } as pg.PoolConfig }],
]

for (const [way, options] of ways) {
  describePostgres(`text that tries to be SQL, sent ${way}`, database => {
    let pool: pg.Pool
    let latchkey: Latchkey<pg.PoolClient, unknown>
    beforeAll(async () => {
      pool = new pg.Pool({ ...options.pool, connectionString: database.url, max: 4 })
      pool.on('error', () => {})
      const store = postgresStore({ pool, batching: options.batching })
      await store.migrate()
      latchkey = createLatchkey({ store, scope: () => 'acme', telemetry: silentTelemetry, maintenance: false })
    })
    afterAll(async () => {
      await latchkey.close()
      await pool.end()
    })

    const rows = async () => (await pool.query('select count(*)::int as n from latchkey.keys')).rows[0]?.n

    it('stays text as scope, key, input and description, and finds its own row alone', async () => {
      const describe = (input: unknown) => String(input)
      const guarded = latchkey.guarded('orders.guarded', { onFailure: 'rerun', describe })
      const atomic = latchkey.atomic('orders.atomic', { describe })
      const both = (text: string, value: string) => [
        guarded.run({ scope: text, key: text, input: text }, () => value),
        atomic.run({ scope: text, key: text, input: text }, () => value),
      ]
      // All at once, so that they share batches.
      const first = await Promise.all(hostile.flatMap(text => both(text, text)))
      expect(first).toEqual(hostile.flatMap(text => [text, text]))
      const again = await Promise.all(hostile.flatMap(text => both(text, 'another run')))
      expect(again).toEqual(first)
      expect(await rows()).toBe(2 * hostile.length)
      for (const text of hostile) {
        const { records } = await latchkey.list({ scope: text, operation: 'orders.guarded' })
        const shown = text.replaceAll('%', '%25').replaceAll('/', '%2F')
        expect(records.map(record => [record.scope, record.description])).toEqual([[shown, text.slice(0, 80)]])
      }
    })

    it('stays text as the name and the reason of an operator, and as the name of an operation in a list', async () => {
      const hold = latchkey.guarded('orders.hold', { onFailure: 'hold' })
      const before = await rows()
      for (const text of hostile) {
        const row = { scope: 'acme', operation: 'orders.hold', key: text }
        const failed = hold.run({ scope: 'acme', key: text, input: 1 }, () => Promise.reject(new Error(text)))
        await expect(failed).rejects.toMatchObject({ code: 'outcome-unknown' })
        const verdict = { kind: 'happened', status: 201, json: text } as const
        expect(await latchkey.settle(row, verdict, { by: text, reason: text })).toEqual({ kind: 'settled' })
        expect((await latchkey.inspect(row)).audit).toMatchObject([{ by: text, reason: text }])
        expect((await latchkey.list({ operation: text })).records).toEqual([])
      }
      expect(await rows()).toBe(before + hostile.length)
    })

    it('is refused as the name of a schema or of an operation, and as the id of a row', async () => {
      // A name of this kind is quoted, and so a name like any other.
      for (const text of hostile.filter(each => each !== 'NULL')) {
        const misconfigured = expect.objectContaining({ code: 'misconfigured' })
        expect(() => postgresStore({ pool, schema: text })).toThrow(misconfigured)
        expect(() => latchkey.atomic(text)).toThrow(misconfigured)
        await expect(latchkey.inspect({ id: text })).rejects.toThrow(misconfigured)
        await expect(latchkey.list({ after: text })).rejects.toThrow(misconfigured)
      }
    })
  })
}
