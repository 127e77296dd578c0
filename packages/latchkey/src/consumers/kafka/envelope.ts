/** A record of Kafka as a message with an identity. */
import type { Envelope } from '../envelope.ts'
import type { KafkaHeader, KafkaHeaders, KafkaMessage } from './driver.ts'

/** Where a record is. */
export interface Place {
  readonly topic: string
  readonly partition: number
}

export function envelopeOf({ topic, partition }: Place, { offset, value, headers }: KafkaMessage): Envelope {
  const all = textsOf(headers)
  const lower = new Map(Object.entries(all).map(([name, text]) => [name.toLowerCase(), text]))
  // CloudEvents names its attributes `ce_id` in Kafka, and `ce-id` elsewhere.
  const header = (name: string) => lower.get(name.replace(/^ce-/, 'ce_')) ?? lower.get(name)
  return {
    header,
    headers: all,
    bytes: value ?? new Uint8Array(),
    source: topic,
    id: header('message-id'),
    type: undefined,
    contentType: header('content-type'),
    position: `${topic}/${partition}/${offset}`,
  }
}

function textsOf(headers: KafkaHeaders = {}): Record<string, string> {
  const texts: Record<string, string> = {}
  for (const [name, values] of Object.entries(headers)) {
    const first = isMany(values) ? values[0] : values
    if (first !== undefined) texts[name] = typeof first === 'string' ? first : new TextDecoder().decode(first)
  }
  return texts
}

/** `Array.isArray` does not narrow a type to `readonly` arrays. */
function isMany(values: KafkaHeaders[string]): values is readonly KafkaHeader[] {
  return Array.isArray(values)
}
