/** The measurement of the publishers, bundled like the servers: `publishers.mjs '{"url": …}'` answers over its channel. */
import { measurePublisher, type PublisherOrder } from './measure.ts'

const order: PublisherOrder = JSON.parse(process.argv[2] ?? '{}')
process.send?.(await measurePublisher(order))
process.disconnect()
