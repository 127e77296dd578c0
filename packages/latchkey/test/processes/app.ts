/**
 * An application process: three operations over HTTP, on the store it is given. Every execution of a handler is written to a
 * table of its own connection, outside of any transaction of Latchkey, so that a test counts what really ran.
 *
 * Started by fork with a JSON argument; tells its port. `slow` in a body keeps the handler busy for that many milliseconds.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { serve } from '@hono/node-server'
import { type Context, Hono } from 'hono'
import { createLatchkey } from 'latchkey'
import { idempotent } from 'latchkey/http/hono'
import { openPlace } from './database.ts'
import { silentTelemetry } from '../../src/ports/telemetry.ts'

export interface AppArgument {
  readonly place: string
  readonly leaseMs: number
  readonly onInProgress: 'refuse' | 'wait'
}

interface Asked {
  readonly label: string
  readonly slow?: number
}

const argument: AppArgument = JSON.parse(process.argv[2] ?? '{}')
const place = await openPlace(argument.place)
const latchkey = createLatchkey({
  store: place.store,
  scope: (c: Context) => c.req.header('x-account') ?? '',
  telemetry: silentTelemetry,
})
const { leaseMs, onInProgress } = argument
const shared = { leaseMs, onInProgress, holdMsMax: 60_000 }

async function handle(c: Context, write?: (label: string) => Promise<void>): Promise<Response> {
  const { label, slow = 0 } = await c.req.json<Asked>()
  await place.countExecution(label)
  await write?.(label)
  await delay(slow)
  return c.json({ label, by: process.pid }, 201)
}

const app = new Hono()
const hold = latchkey.guarded('hold', { ...shared, onFailure: 'hold' })
const rerun = latchkey.guarded('rerun', { ...shared, onFailure: 'rerun' })
app.post(
  '/hold',
  idempotent(hold, (c: Context) => handle(c), { onError: (_, c) => c.text('failed', 500) }),
)
app.post(
  '/rerun',
  idempotent(rerun, (c: Context) => handle(c)),
)
if (place.store.transactor !== undefined) {
  const atomic = latchkey.atomic('atomic', { onInProgress })
  app.post(
    '/atomic',
    idempotent(atomic, (c: Context, { tx }) => handle(c, label => place.insert(tx, label))),
  )
}

serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) => process.send?.({ port }))
process.on('disconnect', () => process.exit(0))
