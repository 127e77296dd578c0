/** A relay process. Forked with a JSON argument; starts at the first message; relays until it is disconnected. */
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { createRelay, httpTarget } from '../../src/outbox/index.ts'
import { postgresStore } from '../../src/stores/postgres/index.ts'
import { silentTelemetry } from '../../src/ports/telemetry.ts'

export interface RelayArgument {
  readonly database: string
  readonly consumer: string
  readonly leaseMs: number
  /** Kills itself with SIGKILL when that many messages were delivered and the last is not settled yet. */
  readonly dieAfter?: number
}

const { database, consumer, leaseMs, dieAfter }: RelayArgument = JSON.parse(process.argv[2] ?? '{}')
const pool = new pg.Pool({ connectionString: database, max: 3 })
pool.on('error', () => {})
const { outbox } = postgresStore({ pool })
if (outbox === undefined) throw new Error('the postgres store has an outbox')

let deliveries = 0
Reflect.set(globalThis, Symbol.for('latchkey.faultPoint'), (name: string) => {
  if (name !== 'relay:after-deliver') return
  deliveries += 1
  if (deliveries === dieAfter) process.kill(process.pid, 'SIGKILL')
})

const relay = createRelay({
  outbox,
  leaseMs,
  batch: 20,
  concurrency: 4,
  telemetry: silentTelemetry,
  targets: { '*': httpTarget({ url: consumer }) },
})

process.on('disconnect', () => process.exit(0))
process.once('message', () => void run())
process.send?.('ready')

async function run(): Promise<never> {
  for (;;) {
    const turn = await relay.relayOnce()
    if (turn.kind === 'idle') await delay(20)
  }
}
