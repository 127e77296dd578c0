/**
 * A process that consumes: it receives messages, runs marked ones, and kills itself with SIGKILL where it is told to. An effect is a row of the table
 * `effects`, written in the transaction of an atomic message and on a connection of its own for a guarded one.
 */
import pg from 'pg'
import { createLatchkey, silentTelemetry, singleTenant } from 'latchkey'
import { inbox, type InboxMessage, type InboxResult, type Redriven } from 'latchkey/inbox'
import { postgresStore } from 'latchkey/stores/postgres'

export interface ReceivingArgument {
  readonly url: string
  readonly kind: 'atomic' | 'hold' | 'rerun'
  readonly consumer: string
  readonly leaseMs: number
}

export type ToReceiver =
  | {
      readonly kind: 'receive'
      readonly id: string
      /** A fault point of the engine, or `effect`: right after it. */
      readonly dieAt?: string
      readonly slowMs?: number
    }
  | { readonly kind: 'redriven'; readonly slowMs?: number }

export type FromReceiver =
  | { readonly kind: 'ready' }
  | { readonly kind: 'received'; readonly result: InboxResult }
  | { readonly kind: 'redriven'; readonly redriven: readonly Redriven[] }

const argument: ReceivingArgument = JSON.parse(process.argv[2] ?? '{}')
const { consumer, leaseMs } = argument
const pool = new pg.Pool({ connectionString: argument.url, max: 8 })
pool.on('error', () => {})
const tell = (message: FromReceiver) => void process.send?.(message)
const latchkey = createLatchkey({
  ...{ store: postgresStore({ pool }), scope: singleTenant, telemetry: silentTelemetry, maintenance: false },
})

let dieAt: string | undefined
let slowMs = 0
function arrive(at: string): void {
  if (at === dieAt) process.kill(process.pid, 'SIGKILL')
}
// Where the engine reports its moments to a test.
Reflect.set(globalThis, Symbol.for('latchkey.faultPoint'), arrive)

async function effect(client: { query(text: string, values: unknown[]): Promise<unknown> }, message: InboxMessage) {
  await client.query('insert into effects (consumer, message) values ($1, $2)', [consumer, message.id])
  await new Promise(resolve => setTimeout(resolve, slowMs))
  arrive('effect')
}

const options = { consumer, backoffMs: 10 }
const { receive, redriven } = open()

function open() {
  if (argument.kind === 'atomic') {
    const opened = inbox(latchkey.atomic('book'), options)
    const handler = (x: { tx: pg.PoolClient }, message: InboxMessage) => effect(x.tx, message)
    return {
      receive: (message: InboxMessage) => opened.receive(message, handler),
      redriven: () => opened.redriven(handler),
    }
  }
  const opened = inbox(latchkey.guarded('book', { onFailure: argument.kind, leaseMs }), options)
  const handler = (_: unknown, message: InboxMessage) => effect(pool, message)
  return {
    receive: (message: InboxMessage) => opened.receive(message, handler),
    redriven: () => opened.redriven(handler),
  }
}

process.on('message', (asked: ToReceiver) => {
  slowMs = asked.slowMs ?? 0
  dieAt = asked.kind === 'receive' ? asked.dieAt : undefined
  void answer(asked).then(tell)
})

async function answer(asked: ToReceiver): Promise<FromReceiver> {
  if (asked.kind === 'redriven') return { kind: 'redriven', redriven: await redriven() }
  return { kind: 'received', result: await receive({ source: 'orders', id: asked.id, data: { order: asked.id } }) }
}

// The test has ended, so nothing else would end this process.
process.once('disconnect', () => process.exit(1))
tell({ kind: 'ready' })
