import { describeWith } from '../describe-postgres.ts'
import { sharedRabbitmq } from './shared-rabbitmq.ts'

/** A suite on the run's RabbitMQ. Its queues and exchanges need names of their own, because other suites use the server at the same time. */
export function describeRabbitmq(name: string, define: (server: { readonly url: string }) => void): void {
  const server = sharedRabbitmq()
  if (server === undefined) throw new Error('describeRabbitmq needs a file named *.rabbitmq.test.ts')
  describeWith(name, server.kind === 'missing' ? server.why : undefined, () =>
    define({ url: server.kind === 'running' ? server.url : '' }),
  )
}
