/** Delivers into a stream of NATS JetStream, which stores a message once within its duplicate window. */
import { checkOptions, type ChecksOf } from '../../ports/check-options.ts'
import { isError, misconfigured } from '../../ports/errors.ts'
import { callable, count, either, flag, having, text, waitedMs } from '../../ports/option-kinds.ts'
import type { Message } from '../../ports/outbox.ts'
import type { DeliveryResult, Target } from '../../ports/target.ts'
import { errorCode } from '../attempts.ts'
import { type Address, addressOf, concurrencyDefault, headersOf } from '../broker-message.ts'
import type { JetStream, NatsHeaders } from './driver.ts'

export interface NatsTargetOptions<Headers extends NatsHeaders> {
  /** `jetstream(connection)` of `@nats-io/jetstream`. */
  readonly jetstream: JetStream<NoInfer<Headers>>
  /** `headers` of `@nats-io/nats-core`, which `@nats-io/transport-node` exports as well. */
  readonly headers: () => Headers
  /** The stream that must store the message. Another one that takes the subject is refused. */
  readonly stream: string
  /** Default: the topic of the message. For consumers that filter by aggregate: `m => `orders.${m.aggregate}``. */
  readonly subject?: Address
  /** How long one publish waits for its confirm. Default 10,000: less than the relay allows a delivery. */
  readonly timeoutMs?: number
  /** How many messages are unconfirmed at once, each of another aggregate. Default 200. */
  readonly concurrency?: number
  /** Delivers although the stream forgets ids before the relay's last retry, so that a lost confirm can leave two copies. Default false. */
  readonly allowShortWindow?: boolean
}

const natsTargetChecks: ChecksOf<NatsTargetOptions<NatsHeaders>> = {
  jetstream: having('a JetStream client', 'publish', 'jetstreamManager'),
  headers: callable,
  stream: text,
  subject: either(text, callable),
  timeoutMs: waitedMs,
  concurrency: count,
  allowShortWindow: flag,
}

/** Written by the server, or read by it as a command. */
const reservedHeader = /^nats-/i
/** Anything else would be read as another subject, or end the line of the protocol. */
const soundSubject = /^[^\s.*>]+(\.[^\s.*>]+)*$/u
/** The client trims it, so that two ids could become one. */
const soundId = /^\S(?:[^\r\n]*\S)?$/u

export function natsTarget<Headers extends NatsHeaders>(options: NatsTargetOptions<Headers>): Target {
  checkOptions('natsTarget', options, natsTargetChecks)
  const { jetstream, headers, stream, subject: address, timeoutMs = 10_000 } = options
  const { concurrency = concurrencyDefault, allowShortWindow = false } = options
  if (jetstream === undefined || headers === undefined || stream === undefined) {
    throw misconfigured('natsTarget needs jetstream: jetstream(connection), headers, and the name of a stream')
  }

  async function publish(message: Message): Promise<DeliveryResult> {
    const subject = addressOf(address, message)
    if (!soundSubject.test(subject)) return { kind: 'refused', error: 'invalid-subject' }
    if (!soundId.test(message.dedupId)) return { kind: 'refused', error: 'invalid-id' }
    const sent = natsHeaders(headers(), message)
    if (sent === undefined) return { kind: 'refused', error: 'invalid-header' }
    const publishing = { msgID: message.dedupId, headers: sent, timeout: timeoutMs, expect: { streamName: stream } }
    try {
      const ack = await jetstream.publish(subject, message.payload, publishing)
      return { kind: 'delivered', downstreamId: `${ack.stream}:${ack.seq}` }
    } catch (error) {
      return judge(error, () => isStored(subject))
    }
  }

  /** Whether a stream takes this subject. A starting server is silent in the same way; a server that answers knows. */
  async function isStored(subject: string): Promise<boolean> {
    try {
      const manager = await jetstream.jetstreamManager(false)
      await manager.streams.find(subject)
      return true
    } catch (error) {
      return !namesOf(error).includes('StreamNotFoundError')
    }
  }

  return {
    name: `NATS ${stream}`,
    concurrency,
    deliver: publish,
    async prepare({ retryGapMs }) {
      const { streams } = await jetstream.jetstreamManager(false)
      const { config } = await streams.info(stream)
      const windowMs = (config.duplicate_window ?? 0) / 1_000_000
      if (windowMs >= retryGapMs || allowShortWindow) return
      throw misconfigured(
        `natsTarget: the stream ${stream} recognises duplicates for ${windowMs} ms, and the relay may send a message again after ${retryGapMs} ms: ` +
          'raise duplicate_window of the stream, lower backoffMsMax of the relay, or accept second copies with allowShortWindow: true',
      )
    },
  }
}

/** Undefined: the application wrote a header that NATS cannot carry. */
function natsHeaders<Headers extends NatsHeaders>(sent: Headers, message: Message): Headers | undefined {
  const { contentType, headers } = headersOf(message, reservedHeader)
  try {
    sent.set('content-type', contentType)
    for (const [name, value] of headers) sent.set(name, value)
    return sent
  } catch {
    return undefined
  }
}

/** Of the client: the message is larger than the server takes, the subject is not allowed. */
const refusingNames: ReadonlySet<string> = new Set([
  'InvalidArgumentError',
  'InvalidSubjectError',
  'PermissionViolationError',
])
/** Of the server: another stream stores the subject, larger than the stream takes, the stream is sealed. */
const refusingCodes: ReadonlySet<number> = new Set([10_054, 10_060, 10_097, 10_109])

async function judge(error: unknown, isStored: () => Promise<boolean>): Promise<DeliveryResult> {
  const names = namesOf(error)
  const code: unknown = isError(error) ? Reflect.get(error, 'code') : undefined
  if (names.includes('JetStreamApiError') && typeof code === 'number') {
    return { kind: refusingCodes.has(code) ? 'refused' : 'failed', error: `JetStream ${code}` }
  }
  const refusing = names.find(name => refusingNames.has(name))
  if (refusing !== undefined) return { kind: 'refused', error: refusing }
  if (names.includes('JetStreamNotEnabled') && !(await isStored())) return { kind: 'refused', error: 'no-stream' }
  return { kind: 'failed', error: errorCode(error) }
}

/** Of the error and of its cause: the client wraps what a request failed with. */
function namesOf(error: unknown): readonly string[] {
  if (!isError(error)) return []
  return isError(error.cause) ? [error.name, error.cause.name] : [error.name]
}
