/** A process that consumes from a broker, and kills itself with SIGKILL when it comes by a moment, or by so many of them, as it is told. */
import { createLatchkey, silentTelemetry, singleTenant } from 'latchkey'
import type { InboxMessage } from 'latchkey/inbox'
import { openPlace } from '../processes/database.ts'
import { type BrokerName, brokers } from './brokers/all.ts'
import type { Queue } from './brokers/broker.ts'

export type Kind = 'atomic' | 'hold' | 'rerun'

/** At the `nth` time that it comes by this moment; by any, if there is none. */
export interface Death {
  readonly moment?: string
  readonly nth: number
}

export interface ConsumerProcessArgument {
  readonly broker: BrokerName
  readonly url: string
  readonly queue: Queue
  readonly place: string
  readonly kind: Kind
  /** Undefined: it lives until it is killed. */
  readonly death: Death | undefined
}

const { broker, url, queue, place: name, kind, death }: ConsumerProcessArgument = JSON.parse(process.argv[2] ?? '{}')
let moments = 0
function arrive(moment: string): void {
  if (death === undefined || (death.moment !== undefined && death.moment !== moment)) return
  moments += 1
  if (moments === death.nth) process.kill(process.pid, 'SIGKILL')
}
// Where the engine and the consumer report their moments to a test.
Reflect.set(globalThis, Symbol.for('latchkey.faultPoint'), arrive)

const place = await openPlace(name)
const latchkey = createLatchkey({
  store: place.store,
  scope: singleTenant,
  telemetry: silentTelemetry,
  maintenance: false,
})
const labelOf = ({ id }: InboxMessage) => `${queue.name}/${id}`
const { consume } = brokers[broker]
const backoffMs = 50

if (kind === 'atomic') {
  const operation = latchkey.atomic('book.inside')
  await consume(url, queue, {
    operation,
    backoffMs,
    async handler({ tx }, message) {
      await place.insert(tx, labelOf(message))
      arrive('handler')
    },
  })
} else {
  const operation = latchkey.guarded('book.outside', { onFailure: kind, leaseMs: queue.leaseMs })
  await consume(url, queue, {
    operation,
    backoffMs,
    async handler(_, message) {
      await place.countExecution(labelOf(message))
      arrive('handler')
    },
  })
}
// The test has ended, so nothing else would end this process.
process.once('disconnect', () => process.exit(1))
