/** Known bugs in the SQL for SQLite, and in what both SQL stores share. */
import { type Mutant, type NamedTest, story } from './mutant.ts'

const folder = 'packages/latchkey/src/stores/sqlite'
const conforms = (test: string): NamedTest => ({ path: `${folder}/conformance.test.ts`, test })
const completes = (test: string): NamedTest => ({ path: `${folder}/keys/complete.test.ts`, test })

const guard = 'WHERE id = ?1 AND fence = ?2 AND claim_id = ?3 AND state IN (${inProgress}, ${unknown})'

export const sqliteMutants: readonly Mutant[] = [
  {
    name: 'sqlite: complete without the fence',
    patches: [{ file: `${folder}/keys/complete.ts`, find: guard, replace: guard.replace(' AND fence = ?2', '') }],
    caughtBy: [conforms('refuses every write with the wrong fence to a row that is in_progress')],
  },
  {
    name: 'sqlite: complete without the claim id',
    patches: [{ file: `${folder}/keys/complete.ts`, find: guard, replace: guard.replace(' AND claim_id = ?3', '') }],
    caughtBy: [conforms('refuses every write with the wrong claimId to a row that is in_progress')],
  },
  {
    name: 'sqlite: complete by status alone',
    patches: [
      {
        file: `${folder}/keys/complete.ts`,
        find: guard,
        replace: guard.replace(' AND fence = ?2 AND claim_id = ?3', ''),
      },
    ],
    caughtBy: [conforms('refuses every write of an owner that was replaced, and lets the new owner finish')],
  },
  {
    name: 'sqlite: complete many without the fence',
    patches: [{ file: `${folder}/keys/complete.ts`, find: 'k.fence = done.fence AND ', replace: '' }],
    caughtBy: [completes('refuses the one with the wrong fence, and writes the others')],
  },
  {
    name: 'sqlite: complete many without the claim id',
    patches: [{ file: `${folder}/keys/complete.ts`, find: 'k.claim_id = done.claim_id AND ', replace: '' }],
    caughtBy: [completes('refuses the one with the wrong claim id, and writes the others')],
  },
  {
    name: 'sqlite: complete many, and believe it',
    patches: [
      {
        file: `${folder}/keys/complete.ts`,
        find: 'if (completeTogether(handle, part) === part.length) for',
        replace: 'if (completeTogether(handle, part) >= 0) for',
      },
    ],
    caughtBy: [completes('settles the one that has become unknown, with its evidence, and writes the others')],
  },
  {
    name: 'sqlite: dedup window ignored by the claim',
    patches: [
      {
        file: `${folder}/steps/journal.ts`,
        find: '(s.repeat_until_ms IS NULL OR s.repeat_until_ms <= ${nowMsSql})',
        replace: 's.repeat_until_ms IS NULL',
      },
    ],
    caughtBy: [conforms('grants it over an open intent that may be repeated, and never over one that may not')],
  },
  {
    name: 'sql: dedup window ignored by the journal',
    patches: [
      {
        file: 'packages/latchkey/src/stores/shared/journal-row.ts',
        find: 'row.repeat_until_ms !== null && Number(row.repeat_until_ms) > nowMs',
        replace: 'row.repeat_until_ms !== null',
      },
    ],
    caughtBy: [conforms('tells that an open intent may be repeated for as long as the provider recognises its key')],
  },
  {
    name: 'sqlite: application clock in a first lease',
    patches: [
      {
        file: `${folder}/keys/row.ts`,
        find: 'Math.ceil(nowMs + leaseMs)',
        replace: 'Math.ceil(Date.now() + leaseMs)',
      },
    ],
    caughtBy: [{ path: `${folder}/clock.test.ts`, test: 'grants a lease of the length that was asked for' }],
  },
  {
    name: 'sqlite: application clock in a later lease',
    patches: [
      {
        file: `${folder}/keys/claim.ts`,
        find: 'lockedUntilMs: nowMs + request.leaseMs',
        replace: 'lockedUntilMs: Date.now() + request.leaseMs',
      },
    ],
    caughtBy: [{ path: `${folder}/clock.test.ts`, test: 'takes over and sweeps a lease that ran out' }],
  },
  {
    name: 'sqlite: reaper ignoring state',
    patches: [
      {
        file: `${folder}/keys/reap.ts`,
        find: 'WHERE k.expires_at_ms <= ?1 AND k.state IN (${completed}, ${failedRetryable}) AND k.parked_at_ms IS NULL',
        replace: 'WHERE k.expires_at_ms <= ?1',
      },
    ],
    caughtBy: [conforms('reaps expired completed and failed rows, and never a running or unknown one')],
  },
  {
    name: 'sqlite: redrive by delete and insert',
    patches: [
      {
        file: `${folder}/outbox/operate.ts`,
        find: 'UPDATE latchkey_outbox_parked SET parked_at_ms = NULL, due_at_ms = ?2, attempts = 0, crashes = 0\n ',
        replace:
          'REPLACE INTO latchkey_outbox_parked (id, lane, aggregate, blocks, due_at_ms)\n' +
          '  SELECT id, lane, aggregate, blocks, ?2 FROM latchkey_outbox_parked',
      },
    ],
    caughtBy: [{ path: `${folder}/outbox/index.test.ts`, test: 'redrives in place: due at once, history kept' }],
  },
  {
    name: 'sqlite: takeover of a hold row',
    patches: [
      {
        file: 'packages/latchkey/src/stores/shared/grant.ts',
        find: `recovery === 'rerun' ||`,
        replace: `recovery !== 'resume' ||`,
      },
    ],
    caughtBy: [
      conforms('grants a held row to none of fifty after its lease, and sweeps it to unknown'),
      story('SQLite'),
    ],
  },
]
