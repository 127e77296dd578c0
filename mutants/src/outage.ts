/** Known bugs in what is said, remembered and done while the store is away. */
import type { Mutant, NamedTest } from './mutant.ts'

const folder = 'packages/latchkey/src/engine'
const tests = 'packages/latchkey/test/engine'
const truth = (test: string): NamedTest => ({ path: `${tests}/truth.test.ts`, test })
const uncertain = (test: string): NamedTest => ({ path: `${tests}/outage/uncertain-claims.test.ts`, test })
const unstored = (test: string): NamedTest => ({ path: `${tests}/outage/unstored-ends.test.ts`, test })
const effects = (test: string): NamedTest => ({ path: `${tests}/outage/late-effects.test.ts`, test })
const swept = 'settles a row that was swept to unknown under a lost claim as never started, with evidence'

export const outageMutants: readonly Mutant[] = [
  {
    name: 'outage: the claim that records an unknown outcome is released when its reply is lost',
    patches: [
      {
        file: `${folder}/run/claim.ts`,
        find: '    .catch((cause: unknown) => (wasNeverSent(cause) ? failed(cause) : findLostClaim(core, claim, cause)))',
        replace: `    .catch((cause: unknown) => {
      core.uncertain.remember(claim, undefined)
      return failed(cause)
    })`,
      },
    ],
    caughtBy: [
      {
        path: 'packages/latchkey/test/atomic/unknown-in-outage.test.ts',
        test: 'does not free the key of an atomic handler that does not know its outcome',
      },
    ],
  },
  {
    name: 'outage: a call in doubt taken for one that was not sent',
    patches: [{ file: `${folder}/run/claim.ts`, find: 'inDoubt: !answered', replace: 'inDoubt: false && !answered' }],
    caughtBy: [
      truth('a phased claim that committed without a reply: may have been accepted'),
      truth('a deferred one that is written after the 503'),
      truth('a guarded claim in doubt: not executed, and it never is'),
    ],
  },
  {
    name: 'outage: granted phased work without its journal reported as not executed',
    patches: [
      {
        file: `${folder}/steps/run-definition.ts`,
        find: 'unavailable(cause, true)',
        replace: 'unavailable(cause, false)',
      },
    ],
    caughtBy: [truth('its journal cannot be read that it was accepted')],
  },
  {
    name: 'outage: an uncertain claim given up at the first read that does not find it',
    patches: [
      {
        file: `${folder}/outage/uncertain-claims.ts`,
        find: 'return flushing || nowMs - claim.answeredAtMs >= claim.leaseMs',
        replace: 'return flushing || nowMs >= claim.answeredAtMs',
      },
    ],
    caughtBy: [uncertain('that is granted after the store was back is released, too')],
  },
  {
    name: 'outage: uncertain claims past a thousand forgotten',
    patches: [
      {
        file: `${folder}/outage/uncertain-claims.ts`,
        find: '      add(request, firstAfterMs)\n',
        replace: '      if (claims.size() >= 1_000) return\n      add(request, firstAfterMs)\n',
      },
    ],
    caughtBy: [uncertain('are released in batches of a thousand')],
  },
  {
    name: 'outage: claims sent although no more can be remembered',
    patches: [
      {
        file: `${folder}/run/claim.ts`,
        find: 'if (released && uncertain.isFull)',
        replace: 'if (!released && uncertain.isFull)',
      },
    ],
    caughtBy: [uncertain('keep a guarded claim from being sent')],
  },
  {
    name: 'outage: a result that could not be stored left to the recovery of its row',
    patches: [{ file: `${folder}/run/finish.ts`, find: '    storeLater(core, owned, end.judgement)\n', replace: '' }],
    caughtBy: [
      unstored('is stored when the store is back, and the retry replays it'),
      unstored('that it is unknown holds the row'),
      effects('stores the outcome of phased work when the store is back'),
    ],
  },
  {
    name: 'outage: the lease of an unstored result ended with its handler',
    patches: [
      {
        file: `${folder}/kinds/guarded.ts`,
        find: 'if (!this.lease.isHandedOver) this.lease.end()',
        replace: 'this.lease.end()',
      },
    ],
    caughtBy: [unstored('keeps its lease for the maximum hold where only the lease can be renewed')],
  },
  {
    name: 'outage: the result of an effect dropped when it cannot be recorded in time',
    patches: [{ file: `${folder}/steps/effect.ts`, find: '    recordLater(run, recorded)\n', replace: '' }],
    caughtBy: [effects('records the value of an effect when the store is back')],
  },
  {
    name: 'outage: a shutdown that does not wait for unstored results',
    patches: [
      {
        file: `${folder}/runtime.ts`,
        find: 'Promise.all([core.unstored.flush(), core.uncertain.flush(), core.trail?.flush(), core.endRates()])',
        replace: 'core.uncertain.flush()',
      },
    ],
    caughtBy: [unstored('waits for the store to take what is left, within its time')],
  },
  {
    name: 'outage: an unknown row left to a person though its claim was never begun, on PostgreSQL',
    patches: [
      {
        file: 'packages/latchkey/src/stores/postgres/keys/release.ts',
        find: '(f.state = ${state.in_progress} or f.state = ${state.unknown} and not ${hasHappened(sql)})',
        replace: '(f.state = ${state.in_progress} and not ${hasHappened(sql)})',
      },
    ],
    caughtBy: [{ path: 'packages/latchkey/src/stores/postgres/conformance.pg.test.ts', test: swept }],
  },
  {
    name: 'outage: phased work released under its workers, on SQLite',
    patches: [
      {
        file: 'packages/latchkey/src/stores/sqlite/keys/release.ts',
        find: ' AND recovery <> ${recoveryCodes.resume}',
        replace: '',
        times: 2,
      },
    ],
    caughtBy: [
      {
        path: 'packages/latchkey/src/stores/sqlite/conformance.test.ts',
        test: 'leaves phased work to its workers, also when its claim was lost',
      },
    ],
  },
  {
    name: 'outage: workers and the instance sweep the same store',
    patches: [
      {
        file: `${folder}/maintenance.ts`,
        find: `if (!done.has('reap')) await reap(core)`,
        replace: 'await reap(core)',
      },
    ],
    caughtBy: [{ path: `${tests}/maintenance.test.ts`, test: 'where workers do it, and taken back when they end' }],
  },
]
