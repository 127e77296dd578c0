/** Bugs in the statements that most requests take: those for a batch, and those for a request that is alone. */
import type { Mutant } from './mutant.ts'

const folder = 'packages/latchkey/src/stores/postgres'
const eachItsEnd = {
  path: `${folder}/batch/batching.pg.test.ts`,
  test: 'tells each owner its own end: written, repeated, late, lost',
}
const noOverload = {
  path: `${folder}/sql/overloads.pg.test.ts`,
  test: 'makes no key run again, and nothing of its own run with the rights of the application',
}

export const postgresBatchMutants: readonly Mutant[] = [
  {
    name: 'postgres: a batch completes without the claim id',
    patches: [
      {
        file: `${folder}/keys/complete.ts`,
        find: 'where k.fence = 1 and k.claim_id = a.claim_id and',
        replace: 'where k.fence = 1 and',
      },
      {
        file: `${folder}/keys/complete.ts`,
        find: 'k.id = m.id and k.fence = 1 and k.claim_id = m.claim_id and',
        replace: 'k.id = m.id and k.fence = 1 and',
      },
    ],
    caughtBy: [eachItsEnd],
  },
  {
    name: 'postgres: a batch of heartbeats without the claim id',
    patches: [
      {
        file: `${folder}/keys/heartbeat.ts`,
        find: 'where k.fence = a.fence and k.claim_id = a.claim_id and',
        replace: 'where k.fence = a.fence and',
      },
      {
        file: `${folder}/keys/heartbeat.ts`,
        find: 'k.id = m.id and k.fence = m.fence and k.claim_id = m.claim_id and',
        replace: 'k.id = m.id and k.fence = m.fence and',
      },
    ],
    caughtBy: [eachItsEnd],
  },
  {
    name: 'postgres: a batch whose row moved is not met alone',
    patches: [
      {
        file: `${folder}/keys/complete.ts`,
        find: `isWritten(each.claim.id) ? 'written' : sendAlone(each)`,
        replace: `isWritten(each.claim.id) ? 'written' : 'claim-lost'`,
      },
    ],
    caughtBy: [
      {
        path: `${folder}/batch/batching.pg.test.ts`,
        test: 'completes a row that a heartbeat moved while its batch waited for the lock',
      },
    ],
  },
  {
    name: 'postgres: a batch claims what it has not won',
    patches: [
      {
        file: `${folder}/keys/claim-sql.ts`,
        find: 'if pg_catalog.cardinality(won) = pg_catalog.cardinality(ids) then return; end if;',
        replace: 'if cardinality(won) > 0 then return; end if;',
      },
    ],
    caughtBy: [{ path: `${folder}/batch/batching.pg.test.ts`, test: 'claims new keys and sees old ones in one batch' }],
  },
  {
    name: 'postgres: a single completion without the claim id',
    patches: [
      {
        file: `${folder}/keys/complete.ts`,
        find: 'k.fence = 1 and k.claim_id = $2::uuid and',
        replace: 'k.fence = 1 and $2::uuid is not null and',
      },
    ],
    caughtBy: [
      {
        path: `${folder}/conformance.pg.test.ts`,
        test: 'refuses every write with the wrong claimId to a row that is in_progress',
      },
    ],
  },
  {
    name: 'postgres: a function of the database takes names from the path of its caller',
    patches: [
      { file: `${folder}/sql/functions.ts`, find: 'plpgsql set ${ownPath}\n', replace: 'plpgsql\n' },
      {
        file: `${folder}/keys/claim-sql.ts`,
        find: 'if pg_catalog.cardinality(won) = pg_catalog.cardinality(ids) then return; end if;',
        replace: 'if cardinality(won) = cardinality(ids) then return; end if;',
      },
    ],
    caughtBy: [noOverload],
  },
  {
    name: 'postgres: a statement multiplies with an operator that any role may create',
    patches: [{ file: `${folder}/sql/fragments.ts`, find: '* 1000.0)::float8', replace: '* 1000)::float8' }],
    caughtBy: [noOverload],
  },
]
