/**
 * One subject as a server process of its own. Started by fork with a JSON argument; tells its port, answers to `proof` and
 * `settings` over the same channel, and ends with its parent.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { serve } from '@hono/node-server'
import { type Context, Hono } from 'hono'
import { createLatchkey, type Latchkey } from 'latchkey'
import { idempotent } from 'latchkey/http/hono'
import { type Backend, openBackend } from './backend.ts'
import type { Proof, ServerArgument } from './server-process.ts'

const argument: ServerArgument = JSON.parse(process.argv[2] ?? '{}')
const backend = await openBackend(argument)
const latchkey = backend && createLatchkey({ store: backend.store, scope: () => 'bench' })

async function handle(c: Context, insert?: (sku: string) => Promise<number>): Promise<Response> {
  const { sku } = await c.req.json<{ sku: string }>()
  if (argument.workMs > 0) await delay(argument.workMs)
  const id = (await insert?.(sku)) ?? 0
  return c.json({ id, sku, state: 'accepted', note: 'y'.repeat(100) }, 201)
}

function route(app: Hono): void {
  if (backend === undefined || latchkey === undefined) return void app.post('/orders', c => handle(c))
  switch (argument.kind) {
    case 'bare':
      return void app.post('/orders', c => handle(c))
    case 'business':
      return void app.post('/orders', c => backend.transaction(tx => handle(c, sku => backend.insert(tx, sku))))
    case 'guarded':
      return void app.post(
        '/orders',
        idempotent(latchkey.guarded('orders.create', { onFailure: 'hold' }), (c: Context) => handle(c)),
      )
    case 'atomic':
      return void app.post(
        '/orders',
        idempotent(latchkey.atomic('orders.create'), (c: Context, { tx }) => handle(c, sku => backend.insert(tx, sku))),
      )
  }
}

/** Counted through the public listing, as an operator would. */
async function prove({ list }: Pick<Latchkey<unknown, unknown>, 'list'>, { businessRows }: Backend): Promise<Proof> {
  let rows = 0
  let completed = 0
  let after: string | undefined
  do {
    const page = await list({ limit: 1_000, ...(after === undefined ? {} : { after }) })
    rows += page.records.length
    completed += page.records.filter(({ state }) => state === 'completed').length
    after = page.next
  } while (after !== undefined)
  return { rows, completed, businessRows: await businessRows() }
}

const app = new Hono()
route(app)
serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) => process.send?.({ port }))
process.on('message', message => void tell(message))
process.on('disconnect', () => process.exit(0))

async function tell(message: unknown): Promise<void> {
  if (message === 'settings') process.send?.({ settings: (await backend?.settings()) ?? 'nothing is stored' })
  if (message === 'proof') process.send?.({ proof: backend && latchkey && (await prove(latchkey, backend)) })
}
