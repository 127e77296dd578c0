/** Keeps the consumer running until it is stopped. After some errors kafkajs gives up, and tells it by an event only. */
import { sleep } from '../../ports/clock.ts'
import { endsWithin } from '../consuming.ts'
import type { KafkaConsumer, KafkaCrash, KafkaRunConfig } from './driver.ts'
import type { Partitions } from './partition.ts'

export interface Supervised {
  /** Leaves the group. What is still under way is not waited for. */
  end(drained: boolean): Promise<void>
}

const againAfterMs = 1_000
/** The client waits for its fetch, which may take `maxWaitTimeInMs`, 5 s by default. */
const stopMsMax = 10_000

export async function supervise(partitions: Partitions, config: KafkaRunConfig): Promise<Supervised> {
  const { from, consuming, receiver } = partitions
  const { telemetry, operation } = receiver
  const isKafkajs = !storesOffsets(from)
  const run = () => from.run(isKafkajs ? { ...config, autoCommit: false } : config)
  let starting = Promise.resolve()
  const onCrash = ({ payload: { error, restart } }: KafkaCrash): void => {
    telemetry.report('the consumer of Kafka crashed; it will be restarted', { operation, error })
    if (!restart) starting = startAgain(partitions, run)
  }
  const ignoreCrashes = isKafkajs ? from.on?.('consumer.crash', onCrash) : undefined
  try {
    await run()
  } catch (error) {
    ignoreCrashes?.()
    await consuming.stop()
    throw error
  }
  return {
    async end(drained) {
      const leaveMs = drained ? stopMsMax : 0
      // A client that joins its group may wait for a minute. It ends when it is disconnected.
      await endsWithin(receiver.clock, leaveMs, starting)
      ignoreCrashes?.()
      if (isKafkajs) await stopWithin(partitions, leaveMs)
    },
  }
}

/**
 * Of `@confluentinc/kafka-javascript`: it takes `autoCommit` when the consumer is made, restarts by itself, and ends when it is disconnected. Its `events` and
 * `stop` are there and throw.
 */
function storesOffsets(from: KafkaConsumer): boolean {
  return 'storeOffsets' in from
}

async function startAgain({ from, consuming, receiver }: Partitions, run: () => Promise<void>): Promise<void> {
  const { clock, telemetry, operation } = receiver
  while (!consuming.stopping.aborted) {
    await sleep(clock, againAfterMs, consuming.stopping)
    if (consuming.stopping.aborted) return
    try {
      await from.connect()
      return await run()
    } catch (error) {
      telemetry.report('the consumer of Kafka did not start; it will be retried', { operation, error })
    }
  }
}

async function stopWithin({ from, receiver }: Partitions, ms: number): Promise<void> {
  const { clock, telemetry, operation } = receiver
  const stopped = from.stop().catch((error: unknown) => {
    telemetry.report('the consumer of Kafka was not stopped: disconnect it', { operation, error })
  })
  await endsWithin(clock, ms, stopped)
}
