/** The measurement of the outbox, bundled like the servers: `outbox.mjs '{"url": …}'` answers over its channel. */
import { measureOutbox, type OutboxOrder } from './measure.ts'

const order: OutboxOrder = JSON.parse(process.argv[2] ?? '{}')
process.send?.(await measureOutbox(order))
process.disconnect()
