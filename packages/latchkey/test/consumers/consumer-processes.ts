/** Consumers in processes of their own, which die. */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { afterAll, expect, vi } from 'vitest'
import { forkProgram } from '../../../../test/programs/program.ts'
import type { Place } from '../processes/database.ts'
import { type BrokerName, brokers } from './brokers/all.ts'
import type { Queue } from './brokers/broker.ts'
import type { ConsumerProcessArgument, Death, Kind } from './consumer-process.ts'

export interface Shop {
  readonly broker: BrokerName
  readonly url: string
  readonly placeName: string
  readonly place: Place
}

const leaseMs = 1_000
const deathMsMax = 120_000

export interface Processes {
  /** Lives until the suite ends. */
  start(kind: Kind): Promise<void>
  /** Resolves when it has died as it was told. */
  startAndDie(kind: Kind, death: Death): Promise<void>
  /** The ids of as many messages, published. */
  publish(kind: Kind, messages: number): Promise<readonly string[]>
  /** How often each of them happened, once the broker has none left. */
  countsOf(kind: Kind, ids: readonly string[]): Promise<readonly number[]>
}

export function consumerProcesses(prefix: string, shop: () => Shop): Processes {
  const running: ChildProcess[] = []
  afterAll(async () => {
    for (const child of running.splice(0)) await killed(child)
  })
  const queueOf = (kind: Kind): Queue => ({ name: `${prefix}-${kind}`, leaseMs })

  async function fork(kind: Kind, death: Death | undefined): Promise<ChildProcess> {
    const { broker, url, placeName } = shop()
    const argument: ConsumerProcessArgument = { broker, url, queue: queueOf(kind), place: placeName, kind, death }
    const child = await forkProgram(new URL('./consumer-process.ts', import.meta.url), [JSON.stringify(argument)])
    running.push(child)
    return child
  }

  return {
    start: async kind => void (await fork(kind, undefined)),
    async startAndDie(kind, death) {
      const child = await fork(kind, death)
      const exit = once(child, 'exit', { signal: AbortSignal.timeout(deathMsMax) })
      const [, signal]: unknown[] = await exit.catch((cause: unknown) => {
        throw new Error(`a process that was to die has not come by its moment: ${JSON.stringify({ kind, death })}`, {
          cause,
        })
      })
      expect(signal).toBe('SIGKILL')
    },
    async publish(kind, messages) {
      const { broker, url } = shop()
      const ids = Array.from({ length: messages }, (_, index) => `m${String(index).padStart(3, '0')}`)
      await brokers[broker].publish(url, queueOf(kind), ids)
      return ids
    },
    async countsOf(kind, ids) {
      const { broker, url, place } = shop()
      const queue = queueOf(kind)
      const settled = async () => expect(await brokers[broker].waiting(url, queue)).toBe(0)
      await vi.waitFor(settled, { timeout: 120_000, interval: 200 })
      const count = (label: string) => (kind === 'atomic' ? place.businessRows(label) : place.executions(label))
      return Promise.all(ids.map(id => count(`${queue.name}/${id}`)))
    },
  }
}

async function killed(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
}
