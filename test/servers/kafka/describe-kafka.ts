import { describeOwn, whyMissing } from '../brokers/describe-own.ts'
import { findKafka, type KafkaServer, startKafka } from './kafka-server.ts'

/** A suite with Kafka brokers of its own, in one process. */
export function describeKafka(name: string, define: (own: { readonly server: KafkaServer }) => void): void {
  describeOwn(name, { whyMissing: whyMissing(findKafka()), start: startKafka }, define)
}
