/** A delivery of RabbitMQ as a message with an identity, and its copy that waits. */
import type { Envelope } from '../envelope.ts'
import type { RabbitmqMessage } from './driver.ts'

/** Of a copy: the exchange that its message came by. A queue of waiting messages has another one. */
const exchangeHeader = 'x-latchkey-exchange'
/**
 * The server writes the first when a message leaves a queue for another, and drops one that it finds there a second time. It reads further addresses from `CC`,
 * to which the message has gone already.
 */
const notCopied = /^(x-(first-|last-)?death|b?cc$)/i

export function envelopeOf(queue: string, { content, fields, properties }: RabbitmqMessage): Envelope {
  const headers = textsOf(properties.headers)
  const lower = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
  // CloudEvents names its attributes `cloudEvents:id` or `cloudEvents_id` in AMQP, and `ce-id` elsewhere.
  const header = (name: string) =>
    lower.get(name) ??
    lower.get(name.replace(/^ce-/, 'cloudevents:')) ??
    lower.get(name.replace(/^ce-/, 'cloudevents_'))
  const exchange = headers[exchangeHeader] ?? fields.exchange
  return {
    header,
    headers,
    bytes: content,
    source: exchange === '' ? queue : exchange,
    id: textOf(properties.messageId),
    type: textOf(properties.type),
    contentType: textOf(properties.contentType),
    // AMQP has no positions: two messages without an id can only be distinguished by what they contain.
    position: undefined,
  }
}

export function copyOptions({ fields, properties }: RabbitmqMessage): object {
  const kept = Object.entries(properties.headers ?? {}).filter(([name]) => !notCopied.test(name))
  const headers = { [exchangeHeader]: fields.exchange, ...Object.fromEntries(kept) }
  return { ...properties, headers, persistent: true }
}

/** Of the types that AMQP has, those that are texts, numbers and truth values. */
function textsOf(headers: Readonly<Record<string, unknown>> = {}): Record<string, string> {
  const texts: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers)) {
    if (['string', 'number', 'boolean'].includes(typeof value)) texts[name] = String(value)
  }
  return texts
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}
