import { describeOwn, whyMissing } from '../brokers/describe-own.ts'
import { findNats, type NatsServer, startNats } from './nats-server.ts'

/** A suite with a NATS of its own: it starts in 50 ms. */
export function describeNats(name: string, define: (own: { readonly server: NatsServer }) => void): void {
  describeOwn(name, { whyMissing: whyMissing(findNats()), start: startNats }, define)
}
