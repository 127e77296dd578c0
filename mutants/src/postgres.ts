/** Known bugs in the SQL for PostgreSQL. A parameter that lost its use keeps a cast: without one the server refuses the statement. */
import { type Mutant, type NamedTest, story } from './mutant.ts'

const folder = 'packages/latchkey/src/stores/postgres'
const conforms = (test: string): NamedTest => ({ path: `${folder}/conformance.pg.test.ts`, test })
const outboxConforms = (test: string): NamedTest => ({ path: `${folder}/outbox/index.pg.test.ts`, test })

/** The guard of a complete in time. */
const guard = 'where ${mine} and k.state = ${state.in_progress}\n      returning k.id, k.fence'
const guardedBy = (owner: string) =>
  `where k.id = $1::uuid and ${owner} and k.state = \${state.in_progress}\n      returning k.id, k.fence`

const horizon = '${row}.xid < pg_catalog.pg_snapshot_xmin(pg_catalog.pg_current_snapshot())'
const late = outboxConforms('never skips a message whose transaction began first and committed last')

export const postgresMutants: readonly Mutant[] = [
  {
    name: 'postgres: complete without the fence',
    patches: [
      {
        file: `${folder}/keys/complete.ts`,
        find: guard,
        replace: guardedBy('$2::bigint is not null and k.claim_id = $3::uuid'),
      },
    ],
    caughtBy: [conforms('refuses every write with the wrong fence to a row that is in_progress')],
  },
  {
    name: 'postgres: complete without the claim id',
    patches: [
      {
        file: `${folder}/keys/complete.ts`,
        find: guard,
        replace: guardedBy('k.fence = $2::bigint and $3::uuid is not null'),
      },
    ],
    caughtBy: [conforms('refuses every write with the wrong claimId to a row that is in_progress')],
  },
  {
    name: 'postgres: complete by status alone',
    patches: [
      {
        file: `${folder}/keys/complete.ts`,
        find: guard,
        replace: guardedBy('$2::bigint is not null and $3::uuid is not null'),
      },
    ],
    caughtBy: [conforms('refuses every write of an owner that was replaced, and lets the new owner finish')],
  },
  {
    name: 'postgres: steps without fence and claim id',
    patches: [
      {
        file: `${folder}/steps/steps.ts`,
        find: 'where ${mine} and k.state = ${state.in_progress} and ${condition}',
        replace:
          'where k.id = $1::uuid and $2::bigint is not null and $3::uuid is not null and k.state = ${state.in_progress} and ${condition}',
      },
    ],
    caughtBy: [conforms('refuses every step of who has another fence, another claim id or another row')],
  },
  {
    name: 'postgres: dedup window ignored by the claim',
    patches: [
      {
        file: `${folder}/sql/fragments.ts`,
        find: '(open_step.repeat_until > ${sql.now}) is not true',
        replace: 'open_step.repeat_until is null',
      },
    ],
    caughtBy: [conforms('grants it over an open intent that may be repeated, and never over one that may not')],
  },
  {
    name: 'postgres: the window of an intent counted anew with every try',
    patches: [
      {
        file: `${folder}/steps/steps.ts`,
        find: '`case when p.state = ${stepState.open} then p.opened_at else ${now} end`',
        replace: '`${now}`',
      },
    ],
    caughtBy: [conforms('counts the window of an intent that is opened again from its first try')],
  },
  {
    name: 'postgres: application clock in a lease',
    patches: [
      {
        file: `${folder}/keys/claim-sql.ts`,
        find: `t.now + \${milliseconds('$5')}`,
        replace: 'to_timestamp($5::float8 / 1000)',
      },
      { file: `${folder}/keys/claim.ts`, find: '    request.leaseMs,', replace: '    Date.now() + request.leaseMs,' },
    ],
    caughtBy: [{ path: `${folder}/store.pg.test.ts`, test: 'decides by the server’s clock' }],
  },
  {
    name: 'postgres: reaper ignoring state',
    patches: [
      {
        file: `${folder}/keys/reap.ts`,
        find: 'where k.expires_at <= (select ${sql.now}) and (${isExpired(sql)} or ${stays})',
        replace: 'where k.expires_at <= (select ${sql.now})',
      },
    ],
    caughtBy: [conforms('reaps expired completed and failed rows, and never a running or unknown one')],
  },
  {
    name: 'postgres: outbox cursor by max(id)',
    patches: [
      { file: `${folder}/outbox/lanes.ts`, find: horizon, replace: '${row}.xid is not null' },
      {
        file: `${folder}/outbox/lanes.ts`,
        find: '(${row}.xid, ${row}.id) > (l.cursor_xid, l.cursor_id)',
        replace: '${row}.id > l.cursor_id',
      },
    ],
    caughtBy: [late],
  },
  {
    name: 'postgres: outbox without a horizon',
    patches: [{ file: `${folder}/outbox/lanes.ts`, find: horizon, replace: '${row}.xid is not null' }],
    caughtBy: [late],
  },
  {
    name: 'postgres: redrive by delete and insert',
    patches: [
      {
        file: `${folder}/outbox/operate.ts`,
        find: [
          '      update ${parked} p set parked_at = null, due_at = ${sql.now}, attempts = 0, crashes = 0',
          '      where p.id = $1::bigint and p.parked_at is not null returning p.id',
          '    )',
        ].join('\n'),
        replace: [
          '      delete from ${parked} p where p.id = $1::bigint and p.parked_at is not null',
          '      returning p.id, p.xid, p.lane, p.aggregate, p.blocks',
          '    ), again as (',
          '      insert into ${parked} (id, xid, lane, aggregate, blocks, due_at)',
          '      select r.id, r.xid, r.lane, r.aggregate, r.blocks, ${sql.now} from redriven r',
          '    )',
        ].join('\n'),
      },
    ],
    caughtBy: [outboxConforms('redrives in place: due at once, history kept')],
  },
  {
    name: 'postgres: takeover of a hold row',
    patches: [
      {
        file: `${folder}/sql/fragments.ts`,
        find: '(k.recovery = ${recovery.rerun}\n        or k.recovery = ${recovery.resume} and not',
        replace: '(k.recovery <> ${recovery.resume}\n        or not',
      },
    ],
    caughtBy: [
      conforms('grants a held row to none of fifty after its lease, and sweeps it to unknown'),
      story('PostgreSQL'),
    ],
  },
]
