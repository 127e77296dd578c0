/** `consume`: a queue of RabbitMQ, whose messages are requests of an operation. */
import type { Execution } from '../../engine/execution.ts'
import type { DefinedOperation, Operation } from '../../engine/operation.ts'
import type { InboxHandler, InboxResult } from '../../inbox/index.ts'
import { checkOptions, type ChecksOf } from '../../ports/check-options.ts'
import { sleep } from '../../ports/clock.ts'
import { misconfigured } from '../../ports/errors.ts'
import { having, listOf, oneOf, text, waitedMs } from '../../ports/option-kinds.ts'
import { type Consuming, type Delivery, endsWithin, leaveMsMax, startConsuming } from '../consuming.ts'
import { type GivenEnvelopeOptions, messageOf } from '../envelope.ts'
import { consumeChecks, type ConsumeOptions, type InputOptions, type Subscription } from '../options.ts'
import { type Consumed, type Receiver, receiverOf } from '../receiver.ts'
import type { RabbitmqChannel, RabbitmqConnection, RabbitmqMessage } from './driver.ts'
import { envelopeOf } from './envelope.ts'
import {
  openWaitQueues,
  waitMsDefault,
  type WaitQueueOptions,
  type WaitQueues,
  type WaitQueueType,
} from './wait-queues.ts'

export interface RabbitmqConsumeOptions extends ConsumeOptions {
  /** `await connect(url, { recovery: true })` of `amqplib`. The consumer opens a channel on it, again after one was closed. */
  readonly connection: RabbitmqConnection
  /** Must exist, durable. Beside it, the consumer creates the queues in which messages wait: `<queue>.wait.<ms>`. */
  readonly queue: string
  /** How long messages can wait before they come again; delays are rounded up to these. Default 1 s, 10 s, 1 min and 10 min. */
  readonly waitMs?: readonly number[]
  /**
   * Of what type the queues are in which messages wait. Default `classic`. Choose `quorum` in a cluster: a classic queue sends a message back once, whether or not it
   * arrives, and one whose queue is away at that moment is lost. Queues that are there keep their type, and the other one is refused.
   */
  readonly waitQueueType?: WaitQueueType
}

export interface RabbitmqDefinedConsumeOptions<Input> extends RabbitmqConsumeOptions, InputOptions<Input> {}

/** Resolves when messages are delivered. */
export async function consume<X extends Execution, C, Data>(
  operation: Operation<X, C>,
  options: RabbitmqConsumeOptions,
  handler: InboxHandler<X, Data>,
): Promise<Subscription>
export async function consume<Input, C>(
  operation: DefinedOperation<Input, C>,
  options: RabbitmqDefinedConsumeOptions<Input>,
): Promise<Subscription>
export async function consume<X extends Execution, Input, C>(
  operation: Consumed<X, Input, C>,
  options: RabbitmqConsumeOptions | RabbitmqDefinedConsumeOptions<Input>,
  handler?: InboxHandler<X>,
): Promise<Subscription> {
  const owner = `consume ${operation.name}`
  checkOptions(owner, options, rabbitmqChecks)
  const { connection, queue, concurrency = 1, contentType, consumer, ...rest } = options
  const { waitMs = waitMsDefault, waitQueueType = 'classic', ...inboxOptions } = rest
  if (connection === undefined || queue === undefined || waitMs.length === 0) {
    throw misconfigured(
      `${owner} needs connection: await connect(url), the name of a queue, and at least one of waitMs`,
    )
  }
  const receiver = receiverOf(operation, { ...inboxOptions, consumer: consumer ?? queue }, handler)
  const waits = { queue, waitMs, type: waitQueueType }
  const place = { connection, queue, concurrency, waits, receiver, envelope: { contentType } }
  // Before anything is taken: a queue that is missing is an error of the caller's.
  const first = await openSession(place)
  const consuming = startConsuming(receiver, concurrency)
  const running = runSessions(place, consuming, first)
  return {
    async stop(given) {
      const { drained } = await consuming.stop(given)
      await endsWithin(receiver.clock, leaveMsMax, running)
      return { drained }
    },
  }
}

const rabbitmqChecks: ChecksOf<RabbitmqDefinedConsumeOptions<unknown>> = {
  ...consumeChecks,
  connection: having('a connection of amqplib', 'createConfirmChannel'),
  queue: text,
  waitMs: listOf(waitedMs),
  waitQueueType: oneOf('classic', 'quorum'),
}

interface Queue {
  readonly connection: RabbitmqConnection
  readonly queue: string
  readonly concurrency: number
  readonly waits: WaitQueueOptions
  readonly receiver: Receiver
  readonly envelope: GivenEnvelopeOptions
}

/** A channel, for as long as it lasts. */
interface Session {
  readonly channel: RabbitmqChannel
  readonly waiting: WaitQueues
  readonly isClosed: () => boolean
  /** Called when it is closed. One at a time. */
  onClose: () => void
}

async function openSession({ connection, queue, concurrency, waits, receiver }: Queue): Promise<Session> {
  const channel = await connection.createConfirmChannel()
  let session: Session | undefined
  let isClosed = false
  channel.on('close', () => {
    isClosed = true
    session?.onClose()
  })
  channel.on('error', error => {
    receiver.telemetry.report('the channel was closed; it will be opened again', {
      operation: receiver.operation,
      error,
    })
  })
  await channel.checkQueue(queue)
  await channel.prefetch(concurrency)
  const waiting = await openWaitQueues(channel, waits)
  return (session = { channel, waiting, isClosed: () => isClosed, onClose() {} })
}

const againAfterMs = 1_000

async function runSessions(queue: Queue, consuming: Consuming, first: Session): Promise<void> {
  const { clock, telemetry, operation } = queue.receiver
  let session: Session | undefined = first
  while (!consuming.stopping.aborted) {
    try {
      session ??= await openSession(queue)
      await runSession(queue, consuming, session)
    } catch (error) {
      telemetry.report('the queue is not consumed; it will be retried', { operation, error })
      await session?.channel.close().catch(() => undefined)
      session = undefined
    }
    if (session?.isClosed() === true) session = undefined
    if (session === undefined) await sleep(clock, againAfterMs, consuming.stopping)
  }
  await consuming.ended
  // What was not settled goes back to its queue.
  if (session?.isClosed() === false) await session.channel.close().catch(() => undefined)
}

/** Until the channel is closed, the store is down, or `stop` was called. */
async function runSession({ queue, receiver, envelope }: Queue, consuming: Consuming, session: Session): Promise<void> {
  const { channel } = session
  await sleep(receiver.clock, consuming.pauseMs(), consuming.stopping)
  if (consuming.stopping.aborted || session.isClosed()) return
  let interrupt = () => {}
  const interrupted = new Promise<void>(resolve => (interrupt = resolve))
  session.onClose = interrupt
  const deliveryOf = (message: RabbitmqMessage): Delivery => ({
    message: messageOf(envelopeOf(queue, message), envelope),
    // A delivery has no lease here: it lasts as long as its channel.
    renew: () => undefined,
    async settle(result) {
      await settle(session, message, result)
      if (consuming.pauseMs() > 0) interrupt()
    },
    // A delivery that stays open would hold its place for ever. All that are open on the channel come again.
    abandon: () => channel.close().catch(() => undefined),
  })
  consuming.stopping.addEventListener('abort', interrupt, { once: true })
  try {
    const { consumerTag } = await channel.consume(queue, message => {
      // The queue was deleted.
      if (message === null) return interrupt()
      void consuming.take(deliveryOf(message))
    })
    await interrupted
    if (!session.isClosed()) await channel.cancel(consumerTag)
  } finally {
    consuming.stopping.removeEventListener('abort', interrupt)
  }
}

/** After the outcome, or the parked copy, is durable. Exactly once for each: a second acknowledgement closes the channel. */
async function settle({ channel, waiting }: Session, message: RabbitmqMessage, result: InboxResult): Promise<void> {
  // First the copy: a process that dies in between leaves two, and the row decides.
  if (result.kind === 'retry') await waiting.put(message, result.afterMs)
  channel.ack(message)
}
