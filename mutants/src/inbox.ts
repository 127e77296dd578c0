/** Known bugs in the inbox: messages that run although they must not, copies that are not durable, and redrives that two processes take. */
import type { Mutant, NamedTest } from './mutant.ts'

const source = 'packages/latchkey/src'
const inbox = `${source}/inbox`
const tests = 'packages/latchkey/test/inbox'
const received = (test: string): NamedTest => ({ path: `${tests}/memory.test.ts`, test })
const away = (test: string): NamedTest => ({ path: `${tests}/outage.test.ts`, test })
const beaten = (test: string): NamedTest => ({ path: `${tests}/beats.test.ts`, test })
const conforms = (store: 'memory' | 'sqlite', test: string): NamedTest => ({
  path: `${source}/stores/${store}/conformance.test.ts`,
  test,
})

const mismatch = 'parks a message whose data differs from the first of its id, and does not run it'
const oneProcess = 'hands a marked message to one process, however many ask at once'
const lostLease = 'hands it out again when its lease has ended, and takes nothing from the process that lost it'

export const inboxMutants: readonly Mutant[] = [
  {
    name: 'inbox: another message under the same id counts as a duplicate',
    patches: [{ file: `${inbox}/result.ts`, find: "return park('mismatch')", replace: "return { kind: 'duplicate' }" }],
    caughtBy: [received(mismatch)],
  },
  {
    name: 'inbox: the data of a message is not part of its fingerprint',
    patches: [{ file: `${inbox}/delivery.ts`, find: 'body: message.payload,', replace: 'body: new Uint8Array(),' }],
    caughtBy: [received(mismatch)],
  },
  {
    name: 'inbox: the data of a message are written down again',
    patches: [
      {
        file: `${inbox}/message.ts`,
        find: 'jsonBytesOf(given) ?? Buffer.from(jsonOf(owner, data))',
        replace: 'Buffer.from(jsonOf(owner, data))',
      },
    ],
    caughtBy: [
      {
        path: `${source}/consumers/envelope.test.ts`,
        test: 'can be nested deeper than it could be written down again',
      },
    ],
  },
  {
    name: 'inbox: a fingerprint that throws for a message is never done with it',
    patches: [
      {
        file: `${inbox}/delivery.ts`,
        find: "return { kind: 'park', cause: 'input-refused', rowId: undefined, attempts: spent, error }",
        replace: 'throw error',
      },
    ],
    caughtBy: [received('parks a message for which the fingerprint of its operation throws, and runs the next')],
  },
  {
    name: 'inbox: a message without an id runs under an empty one',
    patches: [
      {
        file: `${inbox}/message.ts`,
        find: 'isUsable(source) && isUsable(id) ? lengthPrefixed([source, id]) : undefined',
        replace: "isUsable(source) ? lengthPrefixed([source, id ?? '']) : undefined",
      },
    ],
    caughtBy: [received('parks a message whose id is missing (none), and never runs it')],
  },
  {
    name: 'inbox: two consumers share one identity',
    patches: [
      {
        file: `${inbox}/delivery.ts`,
        find: 'identityOf(owner, consumer, key)',
        replace: "identityOf(owner, 'all', key)",
      },
    ],
    caughtBy: [received('runs one message for each of two consumers, and one id of each of two sources')],
  },
  {
    name: 'inbox: a message counts as parked before its copy is stored',
    patches: [
      {
        file: `${inbox}/park.ts`,
        find: 'await operation[engine].shared.inbox.call(parked => parked.park(copy))',
        replace: 'void operation[engine].shared.inbox.call(parked => parked.park(copy)).catch(() => {})',
      },
    ],
    caughtBy: [away('does not count a message as parked before its copy is stored')],
  },
  {
    name: 'inbox: an outcome that the store did not take counts as done',
    patches: [
      {
        file: `${inbox}/result.ts`,
        find: "return { kind: 'retry', cause: 'store-down', afterMs: 0, error: errorOf(attempt) }",
        replace: "return { kind: 'done' }",
      },
    ],
    caughtBy: [away('does not count a message as done whose outcome the store did not take')],
  },
  {
    name: 'inbox: a message that kills its owners runs for ever',
    patches: [
      {
        file: `${inbox}/delivery.ts`,
        find: 'if (attempt.number > attempt.budget)',
        replace: 'if (attempt.number < 0)',
      },
    ],
    caughtBy: [away('is parked unrun once it was tried as often as it may be')],
  },
  {
    name: 'inbox: the attempts of an atomic message are not counted',
    patches: [
      {
        file: `${inbox}/delivery.ts`,
        find: "if (operation.kind === 'guarded') return attempt.number",
        replace: "if (operation.kind === 'guarded' || operation.kind === 'atomic') return attempt.number",
      },
    ],
    caughtBy: [received('parks a message that failed as often as it may, and runs the next (atomic)')],
  },
  {
    name: 'inbox: a redriven message gets no attempts of its own',
    patches: [{ file: `${inbox}/redrive.ts`, find: 'spent: taken.message.attempts', replace: 'spent: 0' }],
    caughtBy: [
      received('gives a marked message its attempts anew, waits between them, and parks it again after the last'),
    ],
  },
  {
    name: 'inbox: the broker is renewed although the claim is lost',
    patches: [
      {
        file: `${source}/engine/run/lease.ts`,
        find: "if (!this.ended) this.lose('the claim was taken over while the handler ran')",
        replace:
          "this.options.onBeat?.(); if (!this.ended) this.lose('the claim was taken over while the handler ran')",
      },
    ],
    caughtBy: [beaten('renews no lease of the broker once the claim is lost, and aborts the handler')],
  },
  {
    name: 'inbox: memory hands out a marked message that is taken',
    patches: [
      {
        file: `${source}/stores/memory/inbox/index.ts`,
        find: '.filter(each => !isTaken(each, nowMs) && isDue(tables, each, nowMs))',
        replace: '.filter(each => isDue(tables, each, nowMs))',
      },
    ],
    caughtBy: [conforms('memory', oneProcess)],
  },
  {
    name: 'inbox: SQLite hands out a marked message that is taken',
    patches: [
      {
        file: `${source}/stores/sqlite/inbox/index.ts`,
        find: 'AND (p.locked_until_ms IS NULL OR p.locked_until_ms <= ?3)',
        replace: 'AND (p.locked_until_ms IS NULL OR ?3 IS NOT NULL)',
      },
    ],
    caughtBy: [conforms('sqlite', oneProcess)],
  },
  {
    name: 'inbox: PostgreSQL hands out a marked message that is taken',
    patches: [
      {
        file: `${source}/stores/postgres/inbox/index.ts`,
        find: 'and not ${isTaken(sql)} and (p.due_at <=',
        replace: 'and (p.due_at <=',
      },
    ],
    caughtBy: [{ path: `${source}/stores/postgres/conformance.pg.test.ts`, test: oneProcess }],
  },
  {
    name: 'inbox: who lost a marked message still ends it',
    patches: [
      {
        file: `${source}/stores/sqlite/inbox/index.ts`,
        find: "const isOwned = 'id = ?1 AND run = ?2 AND locked_until_ms IS NOT NULL'",
        replace: "const isOwned = 'id = ?1 AND run >= ?2 AND locked_until_ms IS NOT NULL'",
      },
    ],
    caughtBy: [conforms('sqlite', lostLease)],
  },
  {
    name: 'inbox: a copy parked as unknown runs although its row is gone',
    patches: [
      {
        file: `${source}/stores/memory/inbox/index.ts`,
        find: "return row !== undefined && row.state !== 'unknown'",
        replace: "return row?.state !== 'unknown'",
      },
    ],
    caughtBy: [
      conforms(
        'memory',
        'hands out a message that was parked as unknown once its row is settled, and none whose row is gone',
      ),
    ],
  },
]
