/** Known bugs in consumers of brokers. */
import type { Mutant, NamedTest } from './mutant.ts'

const folder = 'packages/latchkey/src/consumers'
const onNats = (test: string): NamedTest => ({ path: `${folder}/nats/consume.nats.test.ts`, test })
const shared = (test: string): NamedTest => ({ path: `${folder}/consuming.test.ts`, test })
const killed = (test: string): NamedTest => ({ path: 'packages/latchkey/test/consumers/kills.nats.test.ts', test })
const onKafka = (test: string): NamedTest => ({ path: `${folder}/kafka/consume.kafka.test.ts`, test })
const onPlatformatic = (test: string): NamedTest => ({ path: `${folder}/kafka/platformatic/consume.test.ts`, test })
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
    name: 'consumers: an acknowledgement counts as confirmed when it is sent',
    patches: [
      {
        file: `${folder}/nats/confirm.ts`,
        find: 'return joined.confirmed',
        replace: 'return Promise.race([joined.confirmed, undefined])',
      },
    ],
    caughtBy: [
      {
        path: `${folder}/nats/confirm.test.ts`,
        test: 'confirms what was acknowledged before the request, and nothing that came after it',
      },
    ],
  },
  {
    name: 'consumers: stop does not wait for what is under way',
    patches: [{ file: `${folder}/consuming.ts`, find: '[...underWay, redriving]', replace: '[redriving]' }],
    caughtBy: [onNats('finishes what is under way when it is stopped, and takes nothing more')],
  },
  {
    name: 'consumers: a message that comes after stop runs',
    patches: [
      {
        file: `${folder}/consuming.ts`,
        find: 'if (stopping.signal.aborted) return Promise.resolve()',
        replace: 'if (stopping.signal.aborted && running < 0) return Promise.resolve()',
      },
    ],
    caughtBy: [shared('begins nothing once it is stopped, also of what its broker had sent before')],
  },
  {
    name: 'consumers: a delivery that waits for another one asks again at once',
    patches: [
      {
        file: 'packages/latchkey/src/inbox/backoff.ts',
        find: 'return jittered(clock, Math.min(Math.max(afterMs, backoffMs), longestMs))',
        replace: 'return besideAnother ? 1 : jittered(clock, Math.min(Math.max(afterMs, backoffMs), longestMs))',
      },
    ],
    caughtBy: [onNats('waits for a delivery that is under way elsewhere, and asks for it now and then only')],
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
  {
    name: 'consumers: a late acknowledgement is believed',
    patches: [
      {
        file: 'packages/latchkey/src/engine/run/finish.ts',
        find: "if (written !== 'claim-lost') return ending.answer(answerOf(end, storedAs(end)))",
        replace: 'if (written !== undefined) return ending.answer(answerOf(end, storedAs(end)))',
      },
    ],
    caughtBy: [
      onNats('does not acknowledge for an owner that came too late: the next one may fail'),
      onKafka('does not acknowledge for an owner that came too late: the next one may fail'),
    ],
  },
  {
    name: 'consumers: messages are taken while the store is down',
    patches: [
      {
        file: `${folder}/consuming.ts`,
        find: "if (result.kind === 'retry' && result.cause === 'store-down')",
        replace: "if (result.kind === 'retry' && result.cause === 'closed')",
      },
    ],
    caughtBy: [onNats('takes no more messages while its store is down, and runs each of them once when it is back')],
  },
  {
    name: 'consumers: a message that failed comes again at once by RabbitMQ',
    patches: [
      {
        file: `${folder}/rabbitmq/wait-queues.ts`,
        find: 'steps.find(ms => ms >= afterMs) ?? steps.at(-1) ?? afterMs',
        replace: 'steps[0] ?? afterMs',
      },
    ],
    caughtBy: [onRabbitmq('has a message that failed delivered again, after its wait, and parks it in the end')],
  },
  {
    name: 'consumers: an offset is committed before the outcome of its message',
    patches: [
      {
        file: `${folder}/kafka/partition.ts`,
        find: 'await consuming.takeAlone({',
        replace:
          'await from.commitOffsets([{ topic, partition, offset: String(BigInt(message.offset) + 1n) }])\n  await consuming.takeAlone({',
      },
    ],
    caughtBy: [onKafka('commits a position after the outcome of its message is durable, not before')],
  },
  {
    name: 'consumers: an offset stands for a missing id',
    patches: [
      {
        file: `${folder}/kafka/envelope.ts`,
        find: "id: header('message-id'),",
        replace: "id: header('message-id') ?? offset,",
      },
    ],
    caughtBy: [onKafka('parks a message without an id, and one with the id of another, and goes on')],
  },
  {
    name: 'consumers: a message that failed runs again at once in its partition',
    patches: [
      {
        file: `${folder}/kafka/partition.ts`,
        find: "turn = { kind: 'again', afterMs: result.afterMs }",
        replace: "turn = { kind: 'again', afterMs: 0 }",
      },
    ],
    caughtBy: [onKafka('has a message that failed delivered again, after its wait, and parks it in the end')],
  },
  {
    name: 'consumers: the successors of a message that is retried do not wait for it',
    patches: [
      {
        file: `${folder}/kafka/partition.ts`,
        find: "if (turn.kind === 'again' && turn.afterMs > inPlaceMsMax) return pauseFor(partitions, payload, turn.afterMs)",
        replace: "if (turn.kind === 'again' && turn.afterMs > inPlaceMsMax) break",
      },
    ],
    caughtBy: [
      onKafka('runs the messages behind one that is retried after it, and those of other partitions meanwhile'),
    ],
  },
  {
    name: 'consumers: the rest of a stale batch runs',
    patches: [
      {
        file: `${folder}/kafka/partition.ts`,
        find: 'if (!payload.isRunning() || payload.isStale()) return true',
        replace: 'if (!payload.isRunning()) return true',
      },
    ],
    caughtBy: [onKafka('runs no message that is read again from another place')],
  },
  {
    name: 'consumers: a client of Kafka that has given up stays so',
    patches: [
      {
        file: `${folder}/kafka/supervise.ts`,
        find: 'if (!restart) starting',
        replace: 'if (restart) starting',
      },
    ],
    caughtBy: [onKafka('starts its client again when that has given up')],
  },
  {
    name: 'consumers: a position of a stream is committed before the outcome',
    patches: [
      {
        file: `${folder}/kafka/platformatic/stream.ts`,
        find: 'await consuming.takeAlone({',
        replace: 'await message.commit()\n  await consuming.takeAlone({',
      },
    ],
    caughtBy: [onPlatformatic('commits after the outcome is durable, and begins behind what its group has committed')],
  },
  {
    name: 'consumers: the messages of a partition of a stream do not wait for each other',
    patches: [
      {
        file: `${folder}/kafka/platformatic/stream.ts`,
        find: 'while (lanes.isBusy(lane) && !stopping.aborted)',
        replace: 'while (lanes.isFull() && !stopping.aborted)',
      },
    ],
    caughtBy: [
      onPlatformatic(
        'runs the messages behind one that is retried after it, and those of other partitions until one of its own comes',
      ),
    ],
  },
]
