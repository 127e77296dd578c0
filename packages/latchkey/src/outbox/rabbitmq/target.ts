/** Delivers to an exchange of RabbitMQ, on a channel with confirms. A message that no queue takes is not delivered. */
import { type Check, checkOptions, type ChecksOf } from '../../ports/check-options.ts'
import { misconfigured } from '../../ports/errors.ts'
import { callable, count, either, having, text } from '../../ports/option-kinds.ts'
import type { Message } from '../../ports/outbox.ts'
import type { DeliveryOptions, DeliveryResult, Target } from '../../ports/target.ts'
import { errorCode } from '../attempts.ts'
import { type Address, addressOf, concurrencyDefault, headersOf } from '../broker-message.ts'
import { type Confirm, openChannel, type Publication, type PublishChannel } from './channel.ts'
import type { RabbitmqConnection } from './driver.ts'

export interface RabbitmqTargetOptions {
  /** `await connect(url, { recovery: true })` of `amqplib`. The target opens channels on it, again after one was closed. */
  readonly connection: RabbitmqConnection
  /** Must exist. `''` is the default exchange, where the routing key is the name of a queue. */
  readonly exchange: string
  /** Default: the topic of the message. */
  readonly routingKey?: Address
  /** How many messages are unconfirmed at once, each of another aggregate. Default 200. */
  readonly concurrency?: number
}

const exchangeName: Check = {
  wants: "a text, or '' for the default exchange",
  fits: value => typeof value === 'string',
}

const rabbitmqTargetChecks: ChecksOf<RabbitmqTargetOptions> = {
  connection: having('a connection of amqplib', 'createConfirmChannel'),
  exchange: exchangeName,
  routingKey: either(text, callable),
  concurrency: count,
}

/** RabbitMQ reads further routing keys from these. */
const reservedHeader = /^b?cc$/i
/** A short string of the protocol. */
const shortBytesMax = 255
/** The server closes the channel for these: not allowed, no such exchange, too large. */
const refusingCodes: ReadonlySet<number> = new Set([403, 404, 406])

const notSent: Confirm = { kind: 'closed', code: undefined, alone: false }

export function rabbitmqTarget(options: RabbitmqTargetOptions): Target {
  checkOptions('rabbitmqTarget', options, rabbitmqTargetChecks)
  const { connection, exchange, routingKey, concurrency = concurrencyDefault } = options
  if (connection === undefined || exchange === undefined) {
    throw misconfigured(
      "rabbitmqTarget needs connection: await connect(url), and the name of an exchange ('' is the default one)",
    )
  }
  let opening: Promise<PublishChannel> | undefined
  let open: PublishChannel | undefined
  /** One at a time, so that it is known which message a channel was closed for. */
  let lastAlone: Promise<unknown> = Promise.resolve()

  /** Undefined: the relay has given up while there was no connection. */
  async function openFor({ signal }: DeliveryOptions): Promise<PublishChannel | undefined> {
    const channel = await (opening ??= openShared())
    return signal.aborted ? undefined : channel
  }

  async function openShared(): Promise<PublishChannel> {
    const forget = () => void (opening = open = undefined)
    try {
      return (open = await openChannel(connection, forget))
    } catch (error) {
      forget()
      throw error
    }
  }

  async function publishAlone(publication: Publication, signal: AbortSignal): Promise<Confirm> {
    if (signal.aborted) return notSent
    const channel = await openChannel(connection, () => {})
    const confirm = await channel.publish(publication)
    if (!channel.isClosed) await channel.close().catch(() => undefined)
    return confirm
  }

  async function publish(publication: Publication, options: DeliveryOptions): Promise<Confirm> {
    const channel = open ?? (await openFor(options))
    const confirm = (await channel?.publish(publication)) ?? notSent
    if (confirm.kind !== 'closed' || confirm.alone || !isRefusing(confirm.code)) return confirm
    // One of those that were unconfirmed is not accepted. Each is sent again, under its id and by itself.
    const next = lastAlone.then(() => publishAlone(publication, options.signal))
    lastAlone = next.catch(() => undefined)
    return next
  }

  return {
    name: `RabbitMQ ${exchange === '' ? 'default exchange' : exchange}`,
    concurrency,
    async deliver(message, options) {
      const publication = publicationOf(message, { exchange, routingKey: addressOf(routingKey, message) })
      if (publication === undefined) return { kind: 'refused', error: 'name-too-long' }
      try {
        return judge(await publish(publication, options))
      } catch (error) {
        return { kind: 'failed', error: errorCode(error) }
      }
    },
  }
}

/** Undefined: AMQP has no room for one of its names. */
function publicationOf(
  message: Message,
  { exchange, routingKey }: Pick<Publication, 'exchange' | 'routingKey'>,
): Publication | undefined {
  const { dedupId: messageId, payload } = message
  const { contentType, headers } = headersOf(message, reservedHeader)
  const shorts = [routingKey, messageId, contentType, ...headers.map(([name]) => name)]
  if (shorts.some(each => Buffer.byteLength(each) > shortBytesMax)) return undefined
  const content = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength)
  const options = { messageId, contentType, headers: Object.fromEntries(headers), persistent: true, mandatory: true }
  return { exchange, routingKey, content, options }
}

function judge(confirm: Confirm): DeliveryResult {
  switch (confirm.kind) {
    case 'confirmed':
      return { kind: 'delivered' }
    case 'returned':
      return { kind: 'refused', error: 'unroutable' }
    case 'nacked':
      return { kind: 'failed', error: 'nacked' }
    case 'closed':
      if (confirm.alone && isRefusing(confirm.code)) return { kind: 'refused', error: `AMQP ${confirm.code}` }
      return { kind: 'failed', error: 'channel-closed' }
  }
}

function isRefusing(code: number | undefined): boolean {
  return code !== undefined && refusingCodes.has(code)
}
