/** Bugs that make load look like an outage, or one caller's row everybody's. */
import type { Mutant, NamedTest } from './mutant.ts'

const source = 'packages/latchkey/src'
const tests = 'packages/latchkey/test/engine'
const hotKey = (test: string): NamedTest => ({ path: `${tests}/duplicates/hot-key.pg.test.ts`, test })
const unprotected = (test: string): NamedTest => ({ path: `${tests}/unprotected.test.ts`, test })

export const loadMutants: readonly Mutant[] = [
  {
    name: 'load: a joined caller shares the grant of a claim',
    patches: [
      {
        file: `${source}/stores/postgres/keys/claim.ts`,
        find: `if (result.kind === 'won' || result.record.expired) return false`,
        replace: `if (result.kind === 'won') return true`,
      },
    ],
    caughtBy: [hotKey('runs once, tells the others that it runs, and serves everybody else')],
  },
  {
    name: 'load: each claim of a key is a statement',
    patches: [{ file: `${source}/stores/postgres/keys/claim.ts`, find: 'mayShare: mayShareClaim, ', replace: '' }],
    caughtBy: [
      hotKey('runs once, tells the others that it runs, and serves everybody else'),
      hotKey('runs phased and deferred work once'),
    ],
  },
  {
    name: 'load: each atomic duplicate takes a transaction',
    patches: [
      {
        file: `${source}/engine/kinds/atomic.ts`,
        find: 'if (core.executing.has(id)) return answerBesideDuplicate(core, settings, run.request)',
        replace: '',
      },
    ],
    caughtBy: [hotKey('runs atomic work once')],
  },
  {
    name: 'load: a refused caller wakes those that wait',
    patches: [
      {
        file: `${source}/engine/kinds/atomic.ts`,
        find: 'if (!isInProgress(answer)) core.waiters.wake(id)',
        replace: 'if (isInProgress(answer) || !isInProgress(answer)) core.waiters.wake(id)',
      },
    ],
    caughtBy: ['memory.test.ts', 'postgres.pg.test.ts'].map(file => ({
      path: `packages/latchkey/test/atomic/${file}`,
      test: 'asks the store at intervals while it waits, also when other waiting callers are refused',
    })),
  },
  {
    name: 'load: one scope may take every open claim',
    patches: [
      {
        file: `${source}/stores/postgres/batch/batch-queue.ts`,
        find: 'return own >= left',
        replace: 'return own < 0 || left <= 0',
      },
    ],
    caughtBy: [
      {
        path: `${source}/stores/postgres/batch/batch-queue.test.ts`,
        test: 'leaves room for other scopes beside a flood of one',
      },
    ],
  },
  {
    name: 'load: a full queue of calls is called an outage',
    patches: [
      {
        file: `${source}/stores/postgres/batch/batch-queue.ts`,
        find: `new LatchkeyError('overloaded', message, { retryAfterMs: 1_000 })`,
        replace: `new LatchkeyError('store-unavailable', message, { retryAfterMs: 1_000 })`,
      },
    ],
    caughtBy: [
      {
        path: `${source}/stores/postgres/batch/batch-queue.test.ts`,
        test: 'drops what has waited too long before it is sent',
      },
    ],
  },
  {
    name: 'load: an overloaded process runs unprotected',
    patches: [
      {
        file: `${source}/engine/kinds/guarded.ts`,
        find: `settings.onStoreDown === 'refuse' || isLatchkeyError(cause, 'overloaded')`,
        replace: `settings.onStoreDown === 'refuse'`,
      },
    ],
    caughtBy: [unprotected('takes load for no outage')],
  },
  {
    name: 'load: a claim that was never sent is looked for',
    patches: [
      {
        file: `${source}/engine/run/claim.ts`,
        find: 'sent === undefined || wasNeverSent(cause) ?',
        replace: 'sent === undefined ?',
      },
    ],
    caughtBy: [unprotected('looks for no claim that was never sent')],
  },
  {
    name: 'load: duplicates run side by side while the store is away',
    patches: [{ file: `${source}/engine/kinds/guarded.ts`, find: 'if (executing.has(id)) {', replace: 'if (false) {' }],
    caughtBy: [unprotected('runs at most one handler of a key at a time')],
  },
  {
    name: 'load: every claim of a key is written to the SQLite file',
    patches: [
      {
        file: `${source}/stores/sqlite/connection/read-then-write.ts`,
        find: 'if (writes.begin(id, again)) ',
        replace: '',
      },
    ],
    caughtBy: [
      { path: `${source}/stores/sqlite/connection/group-commit.test.ts`, test: 'is one for all claims of a key' },
    ],
  },
  {
    name: 'load: one scope takes every place to wait',
    patches: [
      {
        file: `${source}/engine/run/admit.ts`,
        find: 'held >= perProcessMax - total',
        replace: 'total >= perProcessMax',
      },
    ],
    caughtBy: [{ path: `${source}/engine/run/admit.test.ts`, test: 'never lets the waiters of one scope hold more' }],
  },
  {
    name: 'load: a waiting duplicate is counted at each poll',
    patches: [
      {
        file: `${source}/engine/run/admit.ts`,
        find: 'asksAgain: answer !== undefined',
        replace: 'asksAgain: false',
      },
    ],
    caughtBy: [{ path: `${tests}/duplicates/concurrency.test.ts`, test: 'gives fifty callers one execution' }],
  },
]

const hurtsNobody = 'hurt nobody but who asks for them, however often'

export const unreadableMutants: readonly Mutant[] = [
  {
    name: 'unreadable: one row fails its whole batch',
    patches: [
      {
        file: `${source}/stores/shared/record-row.ts`,
        find: 'return { outcome: undefined, why: error instanceof Error ? error.message : String(error) }',
        replace: 'throw error',
      },
    ],
    caughtBy: [
      { path: `${tests}/unreadable/unreadable.pg.test.ts`, test: hurtsNobody },
      { path: `${tests}/unreadable/unreadable.test.ts`, test: hurtsNobody },
    ],
  },
  {
    name: 'unreadable: a completed row without its outcome is claimed for ever',
    patches: [
      {
        file: `${source}/stores/shared/record-row.ts`,
        find: 'const isMissing = outcome === undefined && row.outcome_status === null',
        replace: 'const isMissing = false',
      },
      {
        file: `${source}/engine/rules/decide.ts`,
        find: `if (outcome === undefined) return { kind: 'unreadable', why: 'it is completed, and no outcome is stored for it' }`,
        replace: `if (outcome === undefined) return { kind: 'claim-again' }`,
      },
    ],
    caughtBy: [{ path: `${tests}/unreadable/unreadable.test.ts`, test: 'run nothing of any kind, and say so truly' }],
  },
  {
    name: 'unreadable: a row of a foreign recovery is granted',
    patches: [
      {
        file: `${source}/stores/postgres/sql/fragments.ts`,
        find: ` or \${hasForeignRecovery('k')} then null`,
        replace: ' then null',
      },
    ],
    caughtBy: [
      {
        path: `${source}/stores/postgres/conformance.pg.test.ts`,
        test: 'neither settles the row that cannot be read nor grants it to a request that it would fit',
      },
    ],
  },
]
