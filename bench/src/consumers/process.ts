/** The measurement of a consumer, bundled like the servers: `consumers.mjs '{"url": …}'` answers over its channel. */
import { type ConsumerOrder, measureConsumer } from './measure.ts'

const order: ConsumerOrder = JSON.parse(process.argv[2] ?? '{}')
process.send?.(await measureConsumer(order))
process.disconnect()
