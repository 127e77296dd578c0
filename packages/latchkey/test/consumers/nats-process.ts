/** A process that consumes from NATS, and kills itself with SIGKILL when it has come by so many moments as it is told. */
import { jetstream } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { createLatchkey, silentTelemetry, singleTenant } from 'latchkey'
import { consume } from 'latchkey/consumers/nats'
import type { InboxMessage } from 'latchkey/inbox'
import { openPlace } from '../processes/database.ts'

export interface NatsProcessArgument {
  readonly url: string
  readonly place: string
  readonly kind: 'atomic' | 'hold' | 'rerun'
  /** Undefined: it lives until it is killed. */
  readonly diesAt: number | undefined
}

const { url, place: name, kind, diesAt }: NatsProcessArgument = JSON.parse(process.argv[2] ?? '{}')
let moments = 0
function arrive(): void {
  moments += 1
  if (moments === diesAt) process.kill(process.pid, 'SIGKILL')
}
// Where the engine reports its moments to a test: before and after every commit.
Reflect.set(globalThis, Symbol.for('latchkey.faultPoint'), arrive)

const place = await openPlace(name)
const latchkey = createLatchkey({
  store: place.store,
  scope: singleTenant,
  telemetry: silentTelemetry,
  maintenance: false,
})
const connection = await connect({ servers: url })
const from = await jetstream(connection).consumers.get('ORDERS', kind)
const options = { from, backoffMs: 50, onUnknown: 'park', attemptsMax: 100, concurrency: 4 } as const
const labelOf = ({ id }: InboxMessage) => `${kind}/${id}`

if (kind === 'atomic') {
  await consume(latchkey.atomic('book'), options, async ({ tx }: { tx: unknown }, message) => {
    await place.insert(tx, labelOf(message))
    arrive()
  })
} else {
  await consume(latchkey.guarded('book', { onFailure: kind, leaseMs: 1_000 }), options, async (_, message) => {
    await place.countExecution(labelOf(message))
    arrive()
  })
}
// The test has ended, so nothing else would end this process.
process.once('disconnect', () => process.exit(1))
