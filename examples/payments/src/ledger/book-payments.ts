/** With a broker: the shop publishes its receipts there, and the ledger books them. */
import { headers } from '@nats-io/transport-node'
import type { Target } from 'latchkey/outbox'
import { natsTarget } from 'latchkey/outbox/nats'
import { openBroker, stream, subject } from './broker.ts'
import { type Ledger, superviseLedger } from './ledger-process.ts'
import type { LedgerOrder } from './ledger.ts'

export interface Bookkeeping {
  /** For the relay of the shop. */
  readonly receipts: Target
  /** The name of the broker. */
  readonly broker: string
  readonly ledger: Ledger
  stop(): Promise<void>
}

export async function bookPayments(
  order: Omit<LedgerOrder, 'port'>,
  log: (line: string) => void,
): Promise<Bookkeeping> {
  const { client, name, close } = await openBroker(order.broker)
  try {
    const ledger = await superviseLedger(order, log)
    return {
      receipts: natsTarget({ jetstream: client, headers, stream, subject }),
      broker: name,
      ledger,
      async stop() {
        await ledger.stop()
        await close()
      },
    }
  } catch (error) {
    await close()
    throw error
  }
}
