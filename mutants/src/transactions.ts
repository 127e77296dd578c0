/** Known bugs around the transactions of atomic handlers. */
import type { Mutant, NamedTest } from './mutant.ts'

const library = 'packages/latchkey/src'
const atomic = (file: string, test: string): NamedTest => ({ path: `packages/latchkey/test/atomic/${file}`, test })
const conforms = (store: 'postgres/conformance.pg' | 'sqlite/conformance', test: string): NamedTest => ({
  path: `${library}/stores/${store}.test.ts`,
  test,
})
const nestedConforms = 'commits a nested transaction with the whole, and rolls one back alone'

export const transactionMutants: readonly Mutant[] = [
  {
    name: 'transactions: a nested COMMIT reaches PostgreSQL as it is',
    patches: [
      {
        file: `${library}/stores/postgres/connection/transaction-client.ts`,
        find: 'const instead = nested.enter(text)',
        replace: "const instead = nested.enter(text && 'select 1')",
      },
    ],
    caughtBy: [
      conforms('postgres/conformance.pg', nestedConforms),
      atomic('nested-transactions.pg.test.ts', 'rolls it back with the rest when the handler throws after it'),
    ],
  },
  {
    name: 'transactions: a nested COMMIT reaches SQLite as it is',
    patches: [
      {
        file: `${library}/stores/sqlite/atomic/transaction.ts`,
        find: 'const instead = nested.enter(sql)',
        replace: "const instead = nested.enter(sql && 'select 1')",
      },
    ],
    caughtBy: [conforms('sqlite/conformance', 'refuses to be ended through its tx, and is as it was')],
  },
  {
    name: 'transactions: a COMMIT past tx is not seen',
    patches: [
      {
        file: `${library}/stores/postgres/connection/watch-commands.ts`,
        find: `if (text?.startsWith('COMMIT') === true) hasCommitted = true`,
        replace: `if (text === 'never') hasCommitted = true`,
      },
    ],
    caughtBy: [
      atomic('ended-by-handler.pg.test.ts', 'is answered and remembered as committed, by the client'),
      atomic('ended-by-handler.pg.test.ts', 'is remembered as completed when a nested transaction committed it'),
    ],
  },
  {
    name: 'transactions: a handler that committed and threw may run again',
    patches: [
      {
        file: `${library}/engine/kinds/atomic-misuse.ts`,
        find: '  await rememberUnknown(core, settings, { row, errorCode: committedByHandler })\n',
        replace: '',
      },
    ],
    caughtBy: [
      atomic(
        'ended-by-handler.pg.test.ts',
        'is unknown when it committed and ended with a throw: nobody runs it again',
      ),
    ],
  },
  {
    name: 'transactions: a success on an aborted transaction is stored',
    patches: [
      {
        file: `${library}/engine/kinds/atomic-misuse.ts`,
        find: `if (judgement.kind !== 'keep' || !isRefusal(attempt))`,
        replace: `if (judgement.kind !== 'keep')`,
      },
    ],
    caughtBy: [atomic('swallowed.pg.test.ts', 'gets a 500 for its 201, and the report names savepoints')],
  },
  {
    name: 'transactions: handlers take the whole pool',
    patches: [
      {
        file: `${library}/stores/postgres/connection/pool-share.ts`,
        find: 'Math.max(1, sizeMax - 1)',
        replace: 'sizeMax',
      },
    ],
    caughtBy: [atomic('pool-instead-of-tx.pg.test.ts', 'end, ten of them on a pool of ten')],
  },
  {
    name: 'transactions: a full pool opens the circuit',
    patches: [
      {
        file: `${library}/engine/store/transaction.ts`,
        find: `if (!begun && isLatchkeyError(cause, 'overloaded'))`,
        replace: `if (begun && isLatchkeyError(cause, 'overloaded'))`,
      },
      {
        file: `${library}/engine/store/transaction.ts`,
        find: `if ((!begun || !over) && !isLatchkeyError(cause, 'overloaded'))`,
        replace: 'if (!begun || !over)',
      },
    ],
    caughtBy: [atomic('pool-instead-of-tx.pg.test.ts', 'who waits longer hears 503 overloaded')],
  },
  {
    name: 'transactions: an atomic row of SQLite is held',
    patches: [
      {
        file: `${library}/stores/sqlite/keys/claim.ts`,
        find: `    recovery: 'rerun',\n    lockedUntilMs: undefined,`,
        replace: `    recovery: 'hold',\n    lockedUntilMs: undefined,`,
      },
    ],
    caughtBy: [conforms('sqlite/conformance', 'commits key row and business row together, the row born completed')],
  },
]
