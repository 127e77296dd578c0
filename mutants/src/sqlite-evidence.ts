/** Known bugs in how SQLite keeps and applies evidence, and in what stays of a row after its time. */
import type { Mutant, NamedTest } from './mutant.ts'

const folder = 'packages/latchkey/src/stores/sqlite'
const conforms = (test: string): NamedTest => ({ path: `${folder}/conformance.test.ts`, test })

const early = `row.verdict === 'never-happened' && Number(row.at_ms) < quarantineEndMs`

export const sqliteEvidenceMutants: readonly Mutant[] = [
  {
    name: 'sqlite: no quarantine',
    patches: [
      {
        file: `${folder}/reconcile/apply.ts`,
        find: early,
        replace: `row.verdict === 'never-happened' && quarantineEndMs < 0`,
      },
    ],
    caughtBy: [
      conforms('refuses a "never happened" inside the quarantine, says what is left of it, and never counts it later'),
      conforms('raises no epoch inside the quarantine'),
    ],
  },
  {
    name: 'sqlite: an early negative counts later',
    patches: [
      {
        file: `${folder}/reconcile/apply.ts`,
        find: early,
        replace: `row.verdict === 'never-happened' && nowMs < quarantineEndMs`,
      },
    ],
    caughtBy: [
      conforms('counts no "never happened" that was found inside the quarantine or before it, though applied after it'),
    ],
  },
  {
    name: 'sqlite: evidence applied in any state',
    patches: [
      {
        file: `${folder}/reconcile/apply.ts`,
        find: 'k.state = ${unknown} AND ${fitsSql} AS fits',
        replace: '${fitsSql} AS fits',
      },
      {
        file: `${folder}/reconcile/settle.ts`,
        find: 'parked_at_ms = NULL\n  WHERE id = ?1 AND state = ${unknown}',
        replace: 'parked_at_ms = NULL, locked_until_ms = NULL\n  WHERE id = ?1',
      },
    ],
    caughtBy: [
      conforms('applies nothing to a row in another state, says which, and leaves the evidence kept'),
      conforms('keeps evidence about queued work and applies none: it is not unknown'),
    ],
  },
  {
    name: 'sqlite: epoch never raised',
    patches: [
      {
        file: `${folder}/steps/journal.ts`,
        find: 'epoch = epoch + 1 WHERE id = ?1 AND position = ?2',
        replace: 'epoch = epoch WHERE id = ?1 AND position = ?2',
      },
      {
        file: `${folder}/steps/journal.ts`,
        find: `epoch === 'next-epoch' ? 1 : 0`,
        replace: `epoch === 'next-epoch' ? 0 : 0`,
      },
    ],
    caughtBy: [
      conforms('raises the epoch of the open effect by one, once, when it never happened, and the fence stays'),
      conforms('raises the epoch of an open effect that a person says never happened, at once, and the row waits'),
    ],
  },
  {
    name: 'sqlite: epoch raised without evidence',
    patches: [
      {
        file: `${folder}/steps/journal.ts`,
        find: `epoch === 'next-epoch' ? 1 : 0`,
        replace: `epoch === 'next-epoch' ? 1 : 1`,
      },
    ],
    caughtBy: [conforms('lets phased work go on, in the same epoch, whose late owner proves that nothing happened')],
  },
  {
    name: "sqlite: fence reset by the operator's settle",
    patches: [
      {
        file: `${folder}/reconcile/settle.ts`,
        find: '  settleUnknown(handle, { id, fence: Number(row.fence), phased, effect }, { verdict, retentionMs, atMs })\n',
        replace: [
          '  settleUnknown(handle, { id, fence: Number(row.fence), phased, effect }, { verdict, retentionMs, atMs })',
          `  handle.rows('UPDATE latchkey_keys SET fence = 1 WHERE id = ?1', [id])`,
          `  handle.rows('UPDATE latchkey_outcomes SET fence = 1 WHERE id = ?1', [id])`,
          '',
        ].join('\n'),
      },
    ],
    caughtBy: [conforms('leaves the fence of a later attempt as it is, whoever settles it')],
  },
  {
    name: 'sqlite: replayed delivery accepted',
    patches: [
      {
        file: `${folder}/reconcile/keep.ts`,
        find: 'WHERE excluded.signed_at_ms > r.signed_at_ms',
        replace: 'WHERE excluded.signed_at_ms >= r.signed_at_ms',
      },
    ],
    caughtBy: [
      conforms('refuses a delivery that is not signed later than the one it knows'),
      conforms('takes one of many equal deliveries that arrive at once'),
    ],
  },
  {
    name: 'sqlite: evidence of an earlier generation applied',
    patches: [{ file: `${folder}/reconcile/apply.ts`, find: '(e.at_ms >= k.created_at_ms AND CASE', replace: '(CASE' }],
    caughtBy: [conforms('never applies evidence of an earlier life of a key to a later one')],
  },
  {
    name: 'sqlite: look-up fence ignored',
    patches: [
      {
        file: `${folder}/reconcile/apply.ts`,
        find: 'Number(row.fence) === fence && Number(row.look) === look',
        replace: 'Number(row.fence) + fence + look > 0',
      },
    ],
    caughtBy: [
      conforms('grants the next look-up, with a higher number, when the lease of one ran out, and refuses the old one'),
      conforms('refuses the word of who has another number, another fence or another row'),
    ],
  },
  {
    name: 'sqlite: a late answer for the whole taken while an effect is open',
    patches: [
      {
        file: `${folder}/keys/complete.ts`,
        find: 'AND NOT (state = ${unknown} AND recovery = ${recoveryCodes.resume}',
        replace: 'AND NOT (state = ${unknown} AND recovery < 0',
      },
    ],
    caughtBy: [
      conforms('takes no answer for the whole from a late owner while an effect is open, and keeps it as evidence'),
    ],
  },
  {
    name: 'sql: tombstone granted',
    patches: [
      {
        file: 'packages/latchkey/src/stores/shared/record-row.ts',
        find: 'expired: over && !gone,',
        replace: 'expired: over,',
      },
    ],
    caughtBy: [
      conforms('knows after the retention that the row is gone, and never grants it, whoever asks for it'),
      conforms('queues nothing over a tombstone'),
      conforms('reserves nothing over a tombstone'),
    ],
  },
]
