import { findProgram, type FoundProgram } from '../brokers/find-program.ts'
import { kill, launch } from '../brokers/launch.ts'
import { makeDirectory } from '../postgres-directory.ts'
import { ownsPort } from '../processes.ts'

export type KafkaServer = {
  /** `host:port` of each broker. */
  readonly brokers: readonly string[]
  readonly pid: number
  stop(): Promise<void>
}

const READY_LIMIT_MS = 20_000
const BOOTSTRAP = /bootstrap\.servers=((?:127\.0\.0\.1:\d+,?)+)/

/** kcat contains the protocol's reference library, which can host a cluster of its own in memory. */
export function findKafka(): FoundProgram {
  return findProgram('kcat')
}

/**
 * Starts three brokers in one process, on ports the kernel chooses. They speak Kafka's protocol and create topics by themselves; they have no
 * idempotent producer, no transactions, no createTopics, and forget everything when they end.
 */
export async function startKafka(): Promise<KafkaServer> {
  const found = findKafka()
  if (found.kind === 'missing') throw new Error(`cannot start Kafka: ${found.why}`)
  const directory = makeDirectory({})
  const launched = await launch({
    name: 'Kafka',
    command: found.path,
    // The address is not used: the cluster within takes its place.
    args: ['-X', 'test.mock.num.brokers=3', '-X', 'debug=mock', '-b', 'localhost:1', '-C', '-t', 'boot', '-o', 'end'],
    directory: directory.path,
    readyWithinMs: READY_LIMIT_MS,
    isReady: ({ pid, log }) => brokersIn(log()).some(broker => ownsPort(pid, portOf(broker)) !== 'no'),
  }).catch((error: unknown) => {
    directory.remove()
    throw error
  })
  if (launched === 'port-taken') throw new Error('Kafka found a port taken that the kernel had chosen for it')
  return {
    brokers: brokersIn(launched.log()),
    pid: launched.pid,
    async stop() {
      await kill(launched)
      directory.remove()
    },
  }
}

function brokersIn(log: string): readonly string[] {
  return (
    BOOTSTRAP.exec(log)?.[1]
      ?.split(',')
      .filter(broker => broker !== '') ?? []
  )
}

function portOf(broker: string): number {
  return Number(broker.split(':').at(-1))
}
