/**
 * The application under siege: an API over HTTP/1.1 and HTTP/2, with workers. Started by fork with a JSON argument; reports its ports, and
 * its peak memory twice a second. Every run of a handler is a line in a file.
 */
import { randomUUID } from 'node:crypto'
import { openSync, writeSync } from 'node:fs'
import { createServer as createHttp2Server } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { serve, type ServerType } from '@hono/node-server'
import { type Context, Hono } from 'hono'
import { type EffectsExecution, json, type Outcome } from 'latchkey'
import { idempotent, statusOf } from 'latchkey/http/hono'
import { createWorkers } from 'latchkey/workers'
import { type Input, keysInPostgres, keysInRedis, type Places } from './keys.ts'
import { type Done, operations, type StoreKind } from './operations.ts'
import { lineOf, type Run } from './runs.ts'

export interface AppArgument {
  readonly store: StoreKind
  readonly places: Places
  readonly runsFile: string
}

export type FromApp =
  | { readonly ports: { readonly http: number; readonly http2: number } }
  | { readonly peakMb: number; readonly cacheHits: number }

/** A request may ask its handler to be slow, so that requests for its key pile up. */
const workMsMax = 1_000

const { store, places, runsFile }: AppArgument = JSON.parse(process.argv[2] ?? '{}')
const runs = openSync(runsFile, 'a')
const recordRun = (run: Run) => void writeSync(runs, lineOf(run))

const doneOf = (account: string, id: string): Done => ({ account, id, nonce: randomUUID() })
const accountOf = (c: Context) => c.req.header('x-account') ?? ''

async function act(c: Context, run: Run): Promise<Response> {
  recordRun(run)
  await delay(Math.min(workMsMax, Number(c.req.header('x-work-ms') ?? 0) || 0))
  return c.json(doneOf(accountOf(c), run.id), 201)
}

async function actInSteps(x: EffectsExecution, { account }: Input): Promise<Outcome> {
  await x.effect('charge', { timeoutMs: 10_000 }, async () => (recordRun(x), null))
  return json(201, { ...doneOf(account, x.id) })
}

const openKeys = store === 'redis' ? keysInRedis : keysInPostgres
const { latchkey, atomic, phased, deferred, cacheHits } = openKeys(places, actInSteps)

const reportBytes = 60_000_000
const block = Buffer.alloc(65_536, 'x')

/** As fast as it is read. */
function streamReport(c: Context, run: Run): Response {
  recordRun(run)
  let bytes = 0
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      bytes += block.byteLength
      controller.enqueue(block)
      if (bytes >= reportBytes) controller.close()
    },
  })
  return c.body(body, 201)
}

const onError = (error: Error, c: Context) => c.json({ error: error.message }, 500)
const app = new Hono().onError(onError)
app.post('/transfers', idempotent(latchkey.guarded(operations.transfers, { onFailure: 'hold' }), act, { onError }))
app.post('/uploads', idempotent(latchkey.guarded(operations.uploads, { onFailure: 'hold' }), act, { onError }))
app.post('/reports', idempotent(latchkey.guarded(operations.reports, { onFailure: 'rerun' }), streamReport))
app.post(
  '/hits',
  idempotent(latchkey.guarded(operations.hits, { onFailure: 'rerun', onStoreDown: 'run-unprotected' }), act),
)
if (atomic !== undefined) {
  app.post(
    '/atomic',
    idempotent(atomic, async (c: Context, { tx, id, attempt, fence }) => {
      // In the transaction: a run that was rolled back did not happen.
      await tx.query('insert into orders values ($1, $2, $3)', [id, attempt, fence])
      return c.json(doneOf(accountOf(c), id), 201)
    }),
  )
}
const input = async (c: Context) => ({ account: accountOf(c), body: (await c.req.text()).slice(0, 100) })
app.post('/phased', idempotent(phased, { input }))
app.post('/deferred', idempotent(deferred, { input }))
app.get('/operations/:id', statusOf(latchkey))

const workers = createWorkers(latchkey, { sweeper: { everyMs: 1_000 }, resumer: { everyMs: 250 } })
workers.start()
const listening = (options: object): Promise<{ server: ServerType; port: number }> =>
  new Promise(resolve => {
    const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1', ...options }, ({ port }: AddressInfo) =>
      resolve({ server, port }),
    )
  })
const http = await listening({})
const http2 = await listening({ createServer: createHttp2Server })

const report = (message: FromApp) => void process.send?.(message)
// In kilobytes, the highest since the process started.
const reportPeak = () => report({ peakMb: Math.ceil(process.resourceUsage().maxRSS / 1024), cacheHits: cacheHits() })
report({ ports: { http: http.port, http2: http2.port } })
setInterval(reportPeak, 500)
process.on('disconnect', () => process.exit(1))
process.once('SIGTERM', () => {
  reportPeak()
  process.exit(0)
})
