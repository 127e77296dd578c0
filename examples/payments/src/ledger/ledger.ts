/**
 * The ledger: a process of its own, which books every payment that the shop publishes. A booking, the key of its message and nothing else commit
 * together; the message is acknowledged afterwards. Killed anywhere in between, it gets the message again, and books nothing twice.
 *
 * A port takes control requests:
 *   GET /                              {"fault":null}
 *   GET /pid                           its process id, which is another one after a restart
 *   PUT /fault    {"kind":"late-ack","ms":20000,"messages":1}, or null
 *
 * Started by fork with what `LedgerOrder` says. It reports its port to the parent, and exits with it.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createLatchkey, singleTenant } from 'latchkey'
import { consume } from 'latchkey/consumers/nats'
import type { InboxMessage } from 'latchkey/inbox'
import { logTelemetry } from '../log.ts'
import { answer, answeringErrors, listen, readBody } from '../loopback-server.ts'
import type { Receipt } from '../pay.ts'
import { postgresDatabase } from '../postgres-database.ts'
import type { ShopDatabase } from '../shop-database.ts'
import { sqliteDatabase } from '../sqlite-database.ts'
import { openBroker } from './broker.ts'
import { ledgerFaults, parseLedgerFault } from './faults.ts'

export interface LedgerOrder {
  readonly broker: string
  /** Of the shop's database: a PostgreSQL URL, or the directory of its SQLite file. */
  readonly store: string | undefined
  readonly directory: string
  /** 0: the kernel chooses. */
  readonly port: number
}

const order: LedgerOrder = JSON.parse(process.argv[2] ?? '{}')
const faults = ledgerFaults()
const stop = await start(order)
process.once('disconnect', stop)
process.once('SIGTERM', stop)
// Ctrl-C reaches the whole process group; the parent decides when its ledger exits.
process.on('SIGINT', () => {})
const control = createServer(answeringErrors(handleControl))
process.send?.({ port: await listen(control, order.port) })

function start({ store, directory }: LedgerOrder): Promise<() => void> {
  return store === undefined ? sqliteDatabase(directory).then(keepBooks) : postgresDatabase(store).then(keepBooks)
}

/** Longer than a booking takes. What is under way for longer comes again. */
const drainMs = 3_000

async function keepBooks<Tx>(database: ShopDatabase<Tx>): Promise<() => void> {
  const latchkey = createLatchkey({ store: database.store, scope: singleTenant, telemetry: logTelemetry })
  const broker = await openBroker(order.broker)
  const subscription = await consume(
    latchkey.atomic('payments.book'),
    { from: faults.strike(await broker.consumer()) },
    async ({ tx }, { data }: InboxMessage<Receipt>) => {
      await database.insertBooking(tx, data)
      console.log(`the ledger books payment ${data.payment}: ${data.amount} for ${data.account}`)
    },
  )
  async function end(): Promise<void> {
    await subscription.stop({ timeoutMs: drainMs })
    await latchkey.close()
    await broker.close()
    await database.close()
  }
  return () => void end().finally(() => process.exit(0))
}

async function handleControl(request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.url === '/pid') return answer(response, 200, process.pid)
  if (request.method === 'PUT') {
    const fault = parseLedgerFault(JSON.parse(await readBody(request)))
    if (fault === undefined)
      return answer(response, 400, { error: 'a fault is {"kind":"late-ack","ms":20000} or null' })
    faults.set(fault)
  }
  answer(response, 200, { fault: faults.current() })
}
