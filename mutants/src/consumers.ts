/** Known bugs in consumers of brokers. */
import type { Mutant, NamedTest } from './mutant.ts'

const folder = 'packages/latchkey/src/consumers'
const onNats = (test: string): NamedTest => ({ path: `${folder}/nats/consume.nats.test.ts`, test })
const killed = (test: string): NamedTest => ({ path: 'packages/latchkey/test/consumers/kills.nats.test.ts', test })
const onRabbitmq = (test: string): NamedTest => ({ path: `${folder}/rabbitmq/consume.rabbitmq.test.ts`, test })

export const consumerMutants: readonly Mutant[] = [
  {
    name: 'consumers: a message is acknowledged before its outcome is durable',
    patches: [
      {
        file: `${folder}/consuming.ts`,
        find: 'const result = await receive(message, renew)',
        replace: "await settle({ kind: 'done' })\n      const result = await receive(message, renew)",
      },
    ],
    caughtBy: [killed('run each message at least once, and once more only where a process died')],
  },
  {
    name: 'consumers: a position is taken for an identity',
    patches: [{ file: `${folder}/envelope.ts`, find: "identity = 'message'", replace: "identity = 'position'" }],
    caughtBy: [onNats('runs each message once, however often its producer sends it')],
  },
  {
    name: 'consumers: the broker is not told that a message is still at work',
    patches: [
      {
        file: `${folder}/nats/consume.ts`,
        find: 'renew: () => message.working()',
        replace: 'renew: () => message.seq',
      },
    ],
    caughtBy: [onNats('is not delivered a message again while it runs, however long that takes')],
  },
  {
    name: 'consumers: a failed message comes again at once',
    patches: [{ file: `${folder}/nats/consume.ts`, find: 'message.nak(result.afterMs)', replace: 'message.nak()' }],
    caughtBy: [onNats('has a message that failed delivered again, after its wait, and parks it in the end')],
  },
  {
    name: 'consumers: stop does not wait for what is under way',
    patches: [{ file: `${folder}/consuming.ts`, find: '[...underWay, redriving]', replace: '[redriving]' }],
    caughtBy: [onNats('finishes what is under way when it is stopped, and takes nothing more')],
  },
  {
    name: 'consumers: a message is acknowledged before its copy waits',
    patches: [
      {
        file: `${folder}/rabbitmq/consume.ts`,
        find: "if (result.kind === 'retry') await waiting.put(message, result.afterMs)\n  channel.ack(message)",
        replace:
          "channel.ack(message)\n  if (result.kind === 'retry' && result.afterMs < 0) await waiting.put(message, result.afterMs)",
      },
    ],
    caughtBy: [onRabbitmq('knows a message again that has waited, whichever queue it comes by')],
  },
  {
    name: 'consumers: a message that has waited has another identity',
    patches: [
      {
        file: `${folder}/rabbitmq/envelope.ts`,
        find: 'headers[exchangeHeader] ?? fields.exchange',
        replace: 'fields.exchange',
      },
    ],
    caughtBy: [onRabbitmq('knows a message again that has waited, whichever queue it comes by')],
  },
  {
    name: 'consumers: a delivery that was not settled keeps its place',
    patches: [
      {
        file: `${folder}/rabbitmq/consume.ts`,
        find: 'abandon: () => channel.close().catch(() => undefined)',
        replace: 'abandon: () => undefined',
      },
    ],
    caughtBy: [onRabbitmq('goes on when a copy that waits is refused')],
  },
]
