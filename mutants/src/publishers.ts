/** Known bugs in how messages of the outbox reach a broker. */
import type { Mutant, NamedTest } from './mutant.ts'

const folder = 'packages/latchkey/src/outbox'
const brokers = ['nats', 'rabbitmq', 'kafka'] as const
const on = (broker: (typeof brokers)[number], test: string): NamedTest => ({
  path: `${folder}/${broker}/target.${broker}.test.ts`,
  test,
})

const lostConfirm = 'does not count as delivered what was not confirmed, and sends it again under its id'
const lostMessage = 'sends nothing of an aggregate past a message that was lost'
const refusal = 'parks at once what the broker never accepts; others go on'
const inFlight = 'has many aggregates under way at once, and one message of each'

export const publisherMutants: readonly Mutant[] = [
  {
    name: 'nats: the confirm is ignored',
    patches: [
      {
        file: `${folder}/nats/target.ts`,
        find: 'return judge(error, () => isStored(subject))',
        replace: "return void isStored, { kind: 'delivered' }",
      },
    ],
    caughtBy: [on('nats', lostConfirm)],
  },
  {
    name: 'nats: published without an id',
    patches: [{ file: `${folder}/nats/target.ts`, find: 'msgID: message.dedupId', replace: "msgID: ''" }],
    caughtBy: [on('nats', lostConfirm)],
  },
  {
    name: 'nats: the duplicate window is not compared',
    patches: [{ file: `${folder}/nats/target.ts`, find: 'windowMs >= retryGapMs ||', replace: 'windowMs > 0 ||' }],
    caughtBy: [on('nats', 'delivers nothing and says what to change')],
  },
  {
    name: 'rabbitmq: the confirm is ignored',
    patches: [
      {
        file: `${folder}/rabbitmq/channel.ts`,
        find: "isNack(error) ? { kind: 'nacked' } : { kind: 'closed', ...closing }",
        replace: "isNack(error) && closing ? { kind: 'nacked' } : { kind: 'confirmed' }",
      },
    ],
    caughtBy: [on('rabbitmq', lostConfirm)],
  },
  {
    name: 'rabbitmq: an unroutable message counts as sent',
    patches: [{ file: `${folder}/rabbitmq/target.ts`, find: 'mandatory: true', replace: 'mandatory: false' }],
    caughtBy: [on('rabbitmq', refusal)],
  },
  {
    name: 'rabbitmq: a returned message counts as sent',
    patches: [
      {
        file: `${folder}/rabbitmq/channel.ts`,
        find: "kind: sent.isReturned ? 'returned' : 'confirmed'",
        replace: "kind: sent.isReturned ? 'confirmed' : 'confirmed'",
      },
    ],
    caughtBy: [on('rabbitmq', refusal)],
  },
  {
    name: 'kafka: the confirm is ignored',
    patches: [
      {
        file: `${folder}/kafka/batches.ts`,
        find: 'for (const each of batch) each.reject(error)',
        replace: 'for (const each of batch) each.resolve()',
      },
    ],
    caughtBy: [on('kafka', lostConfirm)],
  },
  {
    name: 'kafka: a refusal of one message is one of its whole batch',
    patches: [
      {
        file: `${folder}/kafka/batches.ts`,
        find: 'batch.length > 1 && mayBeOther(error)',
        replace: 'batch.length === 0',
      },
    ],
    caughtBy: [on('kafka', refusal)],
  },
  {
    name: 'outbox: the second message of an aggregate is sent before the first is confirmed',
    patches: [
      {
        file: `${folder}/delivery.ts`,
        find: 'aggregate === undefined ? undefined : ofAggregate.get(aggregate)',
        replace: 'undefined as Message[] | undefined',
      },
    ],
    caughtBy: brokers.flatMap(broker => [on(broker, lostMessage), on(broker, inFlight)]),
  },
]
