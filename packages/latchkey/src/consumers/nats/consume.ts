/** `consume`: a durable consumer of JetStream, whose messages are requests of an operation. */
import type { Execution } from '../../engine/execution.ts'
import type { DefinedOperation, Operation } from '../../engine/operation.ts'
import type { InboxHandler, InboxResult } from '../../inbox/index.ts'
import { checkOptions, type ChecksOf } from '../../ports/check-options.ts'
import { sleep } from '../../ports/clock.ts'
import { misconfigured } from '../../ports/errors.ts'
import { having, oneOf } from '../../ports/option-kinds.ts'
import { type Consuming, type Delivery, startConsuming } from '../consuming.ts'
import { type EnvelopeOptions, messageOf } from '../envelope.ts'
import { consumeChecks, type ConsumeOptions, type InputOptions, type Subscription } from '../options.ts'
import { type Consumed, type Receiver, receiverOf } from '../receiver.ts'
import { confirmTogether } from './confirm.ts'
import type { NatsConsumer, NatsConsumerInfo, NatsMessage, NatsMessages } from './driver.ts'

export interface NatsConsumeOptions extends ConsumeOptions, Pick<EnvelopeOptions, 'identity'> {
  /**
   * A durable consumer: `await jetstream(connection).consumers.get('ORDERS', 'billing')`. `ack_policy` explicit, no `max_deliver`, and `ack_wait`
   * at least the `leaseMs` of an operation that has one.
   */
  readonly from: NatsConsumer
}

export interface NatsDefinedConsumeOptions<Input> extends NatsConsumeOptions, InputOptions<Input> {}

/** Resolves when the consumer was found fit, and messages are pulled. */
export async function consume<X extends Execution, C, Data>(
  operation: Operation<X, C>,
  options: NatsConsumeOptions,
  handler: InboxHandler<X, Data>,
): Promise<Subscription>
export async function consume<Input, C>(
  operation: DefinedOperation<Input, C>,
  options: NatsDefinedConsumeOptions<Input>,
): Promise<Subscription>
export async function consume<X extends Execution, Input, C>(
  operation: Consumed<X, Input, C>,
  options: NatsConsumeOptions | NatsDefinedConsumeOptions<Input>,
  handler?: InboxHandler<X>,
): Promise<Subscription> {
  const owner = `consume ${operation.name}`
  checkOptions(owner, options, natsChecks)
  const { from, concurrency = 1, identity, contentType, consumer, ...inboxOptions } = options
  if (from === undefined) {
    throw misconfigured(`${owner}: from is missing: await jetstream(connection).consumers.get('ORDERS', 'billing')`)
  }
  const info = await from.info()
  // It has no lease to beat with, and none that `ack_wait` could be too short for.
  const isAtomic = operation.kind === 'atomic'
  const beat = isAtomic ? { beatMs: Math.ceil(ackWaitMsOf(info) / beatsPerAckWait) } : {}
  const receiver = receiverOf(operation, { ...inboxOptions, ...beat, consumer: consumer ?? info.name }, handler)
  checkFit(owner, info, isAtomic ? 0 : receiver.leaseMs)
  const consuming = startConsuming(receiver, concurrency)
  const { stopping } = consuming
  const confirmed = confirmTogether({ clock: receiver.clock, stopping, request: () => from.info() })
  const deliveryOf = (message: NatsMessage): Delivery => ({
    message: messageOf(envelopeOf(info.stream_name, message), { identity, contentType }),
    renew: () => message.working(),
    settle: result => settle(message, result, confirmed),
    // It comes again after `ack_wait`.
    abandon: () => undefined,
  })
  const pulling = pullAgainAndAgain({ from, concurrency, consuming, receiver, deliveryOf })
  return {
    async stop(given) {
      const { drained } = await consuming.stop(given)
      await pulling
      return { drained }
    },
  }
}

const natsChecks: ChecksOf<NatsDefinedConsumeOptions<unknown>> = {
  ...consumeChecks,
  from: having('a consumer of JetStream', 'info', 'consume'),
  identity: oneOf('message', 'position'),
}

/** Two renewals may be lost. */
const beatsPerAckWait = 3
/** Of a server that does not tell: its default. */
const ackWaitDefault = 30_000_000_000

function ackWaitMsOf({ config }: NatsConsumerInfo): number {
  return (config.ack_wait ?? ackWaitDefault) / 1_000_000
}

/** What would lose messages, or deliver them again while they run. */
function checkFit(owner: string, info: NatsConsumerInfo, leaseMs: number): void {
  const { name, config } = info
  const { ack_policy: ackPolicy, max_deliver: maxDeliver = -1 } = config
  const ackWaitMs = ackWaitMsOf(info)
  if (ackPolicy !== 'explicit') {
    throw misconfigured(
      `${owner}: the consumer ${name} has ack_policy ${ackPolicy ?? 'none'}: with any other than explicit, messages are acknowledged that did not run`,
    )
  }
  if (ackWaitMs < leaseMs) {
    throw misconfigured(
      `${owner}: the consumer ${name} has an ack_wait of ${ackWaitMs} ms, and the operation a leaseMs of ${leaseMs}: make ack_wait at least as long, or messages are delivered again while they run`,
    )
  }
  if (maxDeliver > 0) {
    throw misconfigured(
      `${owner}: the consumer ${name} has max_deliver ${maxDeliver}: after so many deliveries the server drops a message without a report. Make it -1: Latchkey counts attempts and parks the message`,
    )
  }
}

function envelopeOf(stream: string, { data, headers, seq }: NatsMessage): Parameters<typeof messageOf>[0] {
  const all: Record<string, string> = {}
  const lower = new Map<string, string>()
  for (const [name, [value = '']] of headers ?? []) {
    all[name] = value
    lower.set(name.toLowerCase(), value)
  }
  const header = (name: string) => lower.get(name)
  return {
    header,
    headers: all,
    bytes: data,
    source: stream,
    id: header('nats-msg-id'),
    type: undefined,
    contentType: header('content-type'),
    position: `${stream}/${seq}`,
  }
}

/** After the outcome, or the parked copy, is durable. Resolves when the server has confirmed it. */
function settle(message: NatsMessage, result: InboxResult, confirmed: () => Promise<unknown>): Promise<unknown> {
  if (result.kind === 'retry') message.nak(result.afterMs)
  // Without a reason: servers before 2.10.4 take one for an unknown command, and deliver the message again.
  else if (result.kind === 'parked') message.term()
  else message.ack()
  return confirmed()
}

interface Pull {
  readonly from: NatsConsumer
  readonly concurrency: number
  readonly consuming: Consuming
  readonly receiver: Receiver
  deliveryOf(message: NatsMessage): Delivery
}

/** After a failure of the connection, or of the consumer. */
const againAfterMs = 1_000

async function pullAgainAndAgain(pull: Pull): Promise<void> {
  const { consuming, receiver } = pull
  const { clock, telemetry, operation } = receiver
  while (!consuming.stopping.aborted) {
    try {
      await sleep(clock, consuming.pauseMs(), consuming.stopping)
      await pullOnce(pull)
    } catch (error) {
      telemetry.report('pulling messages failed; it will be retried', { operation, error })
      await sleep(clock, againAfterMs, consuming.stopping)
    }
  }
}

/** Until the subscription ends, the store is down, or `stop` was called. */
async function pullOnce({ from, concurrency, consuming, deliveryOf }: Pull): Promise<void> {
  const { stopping } = consuming
  if (stopping.aborted) return
  const messages: NatsMessages = await from.consume({ max_messages: concurrency })
  const stop = () => messages.stop()
  stopping.addEventListener('abort', stop, { once: true })
  if (stopping.aborted) stop()
  try {
    for await (const message of messages) {
      await consuming.take(deliveryOf(message))
      if (consuming.pauseMs() > 0) return
    }
  } finally {
    stopping.removeEventListener('abort', stop)
    stop()
  }
}
