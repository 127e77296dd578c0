/**
 * An application as its author would write it, in a process of its own: every kind of operation, over HTTP, on PostgreSQL. One message
 * names its port; the others are all that Latchkey counts, observes and reports. Reports also go to its standard error, as by default.
 *
 * `slow` in a body keeps the work busy for that many milliseconds. `X-Fails` makes it fail: a retry without it succeeds.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { inspect } from 'node:util'
import { serve } from '@hono/node-server'
import { type Context, Hono } from 'hono'
import { consoleTelemetry, createLatchkey, type Execution, json, type Telemetry } from 'latchkey'
import { idempotent, statusOf } from 'latchkey/http/hono'
import { createWorkers, type WorkersOptions } from 'latchkey/workers'
import { openPlace } from '../processes/database.ts'

export interface ShopArgument {
  readonly place: string
  readonly leaseMs: number
  /** Absent: no workers run in this process. */
  readonly workers?: WorkersOptions
}

export interface FromShop {
  readonly kind: 'counted' | 'observed' | 'reported' | 'replayed' | 'flushed'
  /** The metric, the message of a report, or the id of the row that was replayed. */
  readonly what: string
  readonly operation?: string
  readonly identity?: string
  readonly scope?: string
  readonly detail?: string
  /** With its stack, its causes and all of its members. */
  readonly error?: string
}

interface Asked {
  readonly label: string
  readonly slow?: number
}

const argument: ShopArgument = JSON.parse(process.argv[2] ?? '{}')
const { leaseMs, workers } = argument
const place = await openPlace(argument.place)
const latchkey = createLatchkey({
  store: place.store,
  // A wallet is its owner's alone; everything else belongs to the whole account.
  scope: (c: Context) => (c.req.path.startsWith('/wallets') ? [accountOf(c), userOf(c)] : accountOf(c)),
  telemetry: telemetryOf(),
  maintenance: false,
  http: {
    expiresHeader: true,
    onReplay: (_, { id, scope }) => tell({ kind: 'replayed', what: id, scope }),
  },
})

function tell(message: FromShop): void {
  if (process.connected) process.send?.(message)
}

function telemetryOf(): Telemetry {
  const shown = consoleTelemetry()
  return {
    count: (what, attributes) => tell({ kind: 'counted', what, ...attributes }),
    observe: (what, _, attributes) => tell({ kind: 'observed', what, ...attributes }),
    report(what, { error, ...attributes }) {
      shown.report(what, { error, ...attributes })
      const text = error === undefined ? {} : { error: inspect(error, { depth: 8 }) }
      tell({ kind: 'reported', what, ...attributes, ...text })
    },
  }
}

function accountOf(c: Context): string {
  return c.req.header('x-account') ?? ''
}

function userOf(c: Context): string {
  return c.req.header('x-user') ?? ''
}

/** Counted in this process as well: a database that is down counts nothing. */
let handled = 0

async function work(c: Context, execution: Execution, write?: (label: string) => Promise<void>): Promise<Response> {
  const { label, slow = 0 } = await c.req.json<Asked>()
  handled += 1
  await place.countExecution(label)
  await write?.(label)
  await delay(slow)
  if (c.req.header('x-fails') === 'by throwing') throw new Error('socket hang up')
  if (c.req.header('x-fails') !== undefined) return c.json({ error: 'the bank is away' }, 500)
  return c.json({ label, account: accountOf(c), charge: execution.downstreamKey('charge'), by: process.pid }, 201)
}

const guarded = { leaseMs, holdMsMax: 60_000 } as const
const failed = (_: Error, c: Context) => c.text('failed', 500)
const orders = latchkey.atomic('orders.create')
const changes = latchkey.guarded('orders.change', { ...guarded, onFailure: 'rerun' })
const payments = latchkey.guarded('payments.create', {
  ...guarded,
  onFailure: 'hold',
  bodyBytesMax: 10_000,
  // The account is the scope, and not all of its people may see its payments.
  authorizeReplay: c => userOf(c) !== 'intern',
})
const wallets = latchkey.guarded('wallets.create', { ...guarded, onFailure: 'rerun', onExpiry: 'gone' })

const transfers = latchkey.phased<Asked>(
  'transfers.create',
  { version: 1, leaseMs },
  async (x, { label, slow = 0 }) => {
    await x.phase('debit', async tx => {
      await place.countExecution(`${label}/debit`)
      await place.insert(tx, `${label}/debit`)
    })
    await x.phase('credit', async tx => {
      await place.insert(tx, `${label}/credit`)
      await place.countExecution(`${label}/credit`)
      await delay(slow)
    })
    return json(201, { label })
  },
)

const archives = latchkey.deferred<Asked>('archives.create', { deadlineMs: 3_600_000 }, async (_, { label }) =>
  json(201, { label }),
)

const app = new Hono()
app.post(
  '/orders',
  idempotent(orders, (c: Context, execution) => work(c, execution, label => place.insert(execution.tx, label))),
)
app.on(
  ['GET', 'PUT', 'DELETE', 'PATCH'],
  '/orders/:id',
  idempotent(changes, (c: Context) => {
    handled += 1
    return c.json({ method: c.req.method })
  }),
)
app.post('/payments', idempotent(payments, work, { onError: failed }))
app.post('/wallets', idempotent(wallets, work))
app.post('/transfers', idempotent(transfers, { input: (c: Context) => c.req.json<Asked>() }))
app.post('/archives', idempotent(archives, { input: (c: Context) => c.req.json<Asked>() }))
app.get('/operations/:id', statusOf(latchkey))
app.get('/handled', c => c.text(String(handled)))
app.get('/routes', c => c.json(app.routes.map(({ method, path }) => ({ method, path }))))

if (workers !== undefined) createWorkers(latchkey, workers).start()
serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) => process.send?.({ port }))
// Messages keep their order: this one tells that all before it have arrived.
process.on('message', () => tell({ kind: 'flushed', what: 'all' }))
process.on('disconnect', () => process.exit(0))
