/**
 * One of several processes that ask for the same few keys over and over, through a cache. It prints a line for each run of the handler and for each
 * answer. Times are of the system's monotonic clock, which all processes of a machine share.
 */
import { randomInt } from 'node:crypto'
import { Redis } from 'ioredis'
import pg from 'pg'
import { createLatchkey, isLatchkeyError, silentTelemetry } from 'latchkey'
import { postgresStore } from 'latchkey/stores/postgres'
import { tieredStore } from 'latchkey/stores/tiered'

const [databaseUrl = '', cacheUrl = '', keys = '1', seconds = '1'] = process.argv.slice(2)
const pool = new pg.Pool({ connectionString: databaseUrl, max: 4 })
const cache = new Redis(cacheUrl, { maxRetriesPerRequest: 1, retryStrategy: () => 50 })
cache.on('error', () => {})
const store = tieredStore({ store: postgresStore({ pool }), cache, operations: ['pay'] })
const latchkey = createLatchkey({ store, scope: () => 'acme', telemetry: silentTelemetry, maintenance: false })
const pay = latchkey.guarded('pay', { onFailure: 'rerun' })

const nowMs = () => Number(process.hrtime.bigint() / 1_000n) / 1_000
const say = (line: object) => console.log(JSON.stringify(line))
const untilMs = nowMs() + Number(seconds) * 1_000

async function ask(): Promise<void> {
  const key = `k${randomInt(Number(keys))}`
  const startMs = nowMs()
  const run = await pay.run({ scope: 'acme', key, input: {} }, async () => {
    const { rows } = await pool.query<{ n: number }>('insert into runs (key) values ($1) returning n', [key])
    const n = rows[0]?.n
    say({ kind: 'ran', key, n, atMs: nowMs() })
    return n
  })
  say({ kind: 'answer', key, n: run, startMs })
}

async function loop(): Promise<void> {
  while (nowMs() < untilMs) {
    await ask().catch((error: unknown) => {
      if (!isLatchkeyError(error, 'in-progress')) throw error
    })
    await new Promise(resolve => setTimeout(resolve, 2))
  }
}

await Promise.all(Array.from({ length: 8 }, loop))
say({ kind: 'figures', ...store.cacheFigures() })
await latchkey.close()
await pool.end()
cache.disconnect()
