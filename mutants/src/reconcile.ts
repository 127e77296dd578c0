/** Known bugs in reconciliation, and in the engine's part of it. */
import { type Mutant, type NamedTest, simulation } from './mutant.ts'

const folder = 'packages/latchkey/src/reconcile'
const engine = 'packages/latchkey/src/engine'
const settling = (test: string): NamedTest => ({ path: 'packages/latchkey/test/reconcile/sqlite.test.ts', test })
const webhooks = (test: string): NamedTest => ({ path: 'packages/latchkey/test/reconcile/webhooks.test.ts', test })
const signed = (test: string): NamedTest => ({ path: `${folder}/webhooks/signatures.test.ts`, test })
const phased = (test: string): NamedTest => ({ path: 'packages/latchkey/test/phased/sqlite.test.ts', test })
const deferred = (test: string): NamedTest => ({ path: 'packages/latchkey/test/deferred/sqlite.test.ts', test })

const resumer = (test: string): NamedTest => ({ path: 'packages/latchkey/src/workers/resumer.test.ts', test })
const sqlite = (test: string): NamedTest => ({
  path: 'packages/latchkey/src/stores/sqlite/conformance.test.ts',
  test,
})

const quarantine = 'quarantineMs: quarantineMs(operation) + ageMs(),'
const never = settling('believes "never happened" only after the quarantine, and then tries once more with another key')

export const reconcileMutants: readonly Mutant[] = [
  {
    name: 'reconcile: no quarantine, a negative verdict believed at once',
    patches: [{ file: `${folder}/evidence.ts`, find: quarantine, replace: 'quarantineMs: 0 * ageMs(),' }],
    caughtBy: [never, simulation],
  },
  {
    name: 'reconcile: a negative verdict counts from when it is applied',
    patches: [
      {
        file: `${folder}/evidence.ts`,
        find: quarantine,
        replace: 'quarantineMs: quarantineMs(operation) + 0 * ageMs(),',
      },
    ],
    caughtBy: [webhooks('takes a negative for as old as its signature, not as young as its arrival')],
  },
  {
    name: 'reconcile: signature not checked',
    patches: [{ file: `${folder}/webhooks/signatures.ts`, find: 'let fits = false', replace: 'let fits = true' }],
    caughtBy: [
      signed('takes a signature of any of its secrets, and of no other'),
      settling('changes nothing and answers 400 when one is forged, stale or replayed'),
      simulation,
    ],
  },
  {
    name: 'reconcile: replayed delivery accepted',
    patches: [
      {
        file: `${folder}/webhooks/handler.ts`,
        find: '${name}:${id}`, verdict, delivery: { signedAtMs } }',
        replace: '${name}:${id}`, verdict }',
      },
    ],
    caughtBy: [settling('changes nothing and answers 400 when one is forged, stale or replayed'), simulation],
  },
  {
    name: 'reconcile: stored evidence is never applied',
    patches: [
      {
        file: `${folder}/turns.ts`,
        find: 'const moreKept = await applyKept(context, keptPerTurn)',
        replace: 'const moreKept = false && (await applyKept(context, keptPerTurn))',
      },
    ],
    caughtBy: [simulation],
  },
  {
    name: 'engine: epoch never raised in the downstream key',
    patches: [
      {
        file: `${engine}/steps/effect.ts`,
        find: `downstreamKey(run.claim.id, name, 'uuid', epoch)`,
        replace: `downstreamKey(run.claim.id, name, 'uuid', 0 * epoch)`,
      },
    ],
    caughtBy: [phased('raises the epoch of the downstream key only by the verdict that it never happened'), simulation],
  },
  {
    name: 'engine: epoch raised without evidence in the downstream key',
    patches: [
      {
        file: `${engine}/steps/effect.ts`,
        find: `downstreamKey(run.claim.id, name, 'uuid', epoch)`,
        replace: `downstreamKey(run.claim.id, name, 'uuid', run.claim.fence)`,
      },
    ],
    caughtBy: [phased('lets a call that never left be tried again with the same downstream key'), simulation],
  },
  {
    name: "engine: a late owner's answer thrown away",
    patches: [
      { file: `${engine}/steps/effect.ts`, find: '    await storeLateResult(run, { intent, result })\n', replace: '' },
    ],
    caughtBy: [phased('takes the answer of an owner that was given up on as evidence, and never calls again')],
  },
  {
    name: 'engine: overdue work run',
    patches: [
      {
        file: `${engine}/steps/run-definition.ts`,
        find: 'if (isOverdue(journal)) return',
        replace: 'if (isOverdue(journal) && journal.steps.length < 0) return',
      },
    ],
    caughtBy: [deferred('ends in a kept 408 when nobody began it in time, and never runs'), simulation],
  },
  {
    name: 'workers: overdue work of an operation that is not declared waits for ever',
    patches: [
      {
        file: 'packages/latchkey/src/workers/resumer.ts',
        find: 'return row.overdue ? overdue : undefined',
        replace: 'return row.overdue ? undefined : undefined',
      },
    ],
    caughtBy: [resumer('ends rows of an operation that is not declared here when their deadline has passed')],
  },
  {
    name: 'sqlite: begun work is listed as overdue',
    patches: [
      {
        file: 'packages/latchkey/src/stores/sqlite/keys/resumable.ts',
        find: 'WHERE s.id = found.id) AS overdue',
        replace: "WHERE s.id = found.id AND s.name = '') AS overdue",
      },
    ],
    caughtBy: [sqlite('lists work with a step in its journal as begun, whenever its deadline was')],
  },
]
