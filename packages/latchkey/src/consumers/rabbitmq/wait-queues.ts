/**
 * Queues in which messages wait before they come again. RabbitMQ has no delay: `requeue` brings a message back thousands of times a second. So a copy goes to a
 * queue without a consumer, whose messages return to the first queue when their time is over.
 */
import { copyOptions } from './envelope.ts'
import type { RabbitmqChannel, RabbitmqMessage } from './driver.ts'

/** One queue for each: never one for each delay. */
export const waitMsDefault: readonly number[] = [1_000, 10_000, 60_000, 600_000]

/** `quorum`: what returns is confirmed by the first queue, and a node that is lost loses nothing. Needs RabbitMQ 3.10. */
export type WaitQueueType = 'classic' | 'quorum'

export interface WaitQueueOptions {
  /** The one they return to. */
  readonly queue: string
  readonly waitMs: readonly number[]
  readonly type: WaitQueueType
}

/** Without the second, messages are sent back and forgotten, whether or not they arrive; the server wants the third for that. */
const quorum = { 'x-queue-type': 'quorum', 'x-dead-letter-strategy': 'at-least-once', 'x-overflow': 'reject-publish' }

export interface WaitQueues {
  /** Resolves when the server has confirmed the copy. `afterMs` is rounded up to the next of the queues. */
  put(message: RabbitmqMessage, afterMs: number): Promise<void>
}

export async function openWaitQueues(
  channel: RabbitmqChannel,
  { queue, waitMs, type }: WaitQueueOptions,
): Promise<WaitQueues> {
  const steps = waitMs.toSorted((a, b) => a - b)
  const nameOf = (ms: number) => `${queue}.wait.${ms}`
  for (const ms of steps) {
    const back = { 'x-dead-letter-exchange': '', 'x-dead-letter-routing-key': queue }
    const kind = type === 'quorum' ? quorum : {}
    await channel.assertQueue(nameOf(ms), { durable: true, arguments: { 'x-message-ttl': ms, ...back, ...kind } })
  }
  return {
    put(message, afterMs) {
      const step = steps.find(ms => ms >= afterMs) ?? steps.at(-1) ?? afterMs
      return new Promise((resolve, reject) => {
        const confirm = (error: unknown) => (error === null || error === undefined ? resolve() : reject(error as Error))
        channel.sendToQueue(nameOf(step), message.content, copyOptions(message), confirm)
      })
    },
  }
}
