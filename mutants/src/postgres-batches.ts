/** Bugs in the statements that most requests take: those for a batch, and those for a request that is alone. */
import type { Mutant, NamedTest } from './mutant.ts'

const folder = 'packages/latchkey/src/stores/postgres'
const eachItsEnd = {
  path: `${folder}/batch/batched-calls.pg.test.ts`,
  test: 'tells each owner its own end: written, repeated, late, lost',
}
const noOverload = {
  path: `${folder}/sql/overloads.pg.test.ts`,
  test: 'makes no key run again, and nothing of its own run with the rights of the application',
}

const othersAreRefused = {
  path: `${folder}/batch/batched-calls.pg.test.ts`,
  test: 'writes nothing in a batch for who has another fence, or whose row a person has settled',
}
const inOrder = (kind: string) => ({
  path: `${folder}/keys/lock-order.pg.test.ts`,
  test: `of ${kind} locks them in the order of their identities, whatever order the calls came in`,
})

/** The guard of a batch's function. */
const completes = 'k.fence = 1 and k.claim_id = a.claim_id and k.state = ${state.in_progress}'
const beats = 'k.fence = a.fence and k.claim_id = a.claim_id and k.state = ${state.in_progress}'
const guardless = (
  file: string,
  name: string,
  [find, replace]: readonly [string, string],
  caughtBy: NamedTest,
): Mutant => ({
  name: `postgres: a batch of ${name}`,
  patches: [{ file: `${folder}/keys/${file}.ts`, find, replace }],
  caughtBy: [caughtBy],
})
const without = (guard: string, condition: string) => [guard, guard.replace(condition, '')] as const

export const postgresBatchMutants: readonly Mutant[] = [
  {
    name: 'postgres: a message that is refused for one of its rows fails all of them',
    patches: [
      {
        file: `${folder}/batch/carrier.ts`,
        find: 'else await sendApart(send, load)',
        replace: 'else load.refuse(part.error)',
      },
    ],
    caughtBy: [
      {
        path: `${folder}/batch/carrier.test.ts`,
        test: 'sends the parts of a refused message again one by one, and then the calls of the one that is refused',
      },
      {
        path: `${folder}/batch/batched-calls.pg.test.ts`,
        test: 'stores completions although a claim of the same message cannot be',
      },
    ],
  },
  {
    name: 'postgres: a message whose answer was lost is sent again',
    patches: [
      {
        file: `${folder}/batch/carrier.ts`,
        find: 'else if (!isRefusalOfRows(part.error)) load.refuse(part.error)',
        replace: 'else if (!isRefusalOfRows(part.error)) load.resend()',
      },
    ],
    caughtBy: [
      {
        path: `${folder}/batch/carrier.test.ts`,
        test: 'repeats nothing of a message whose answer was lost, and takes the next one',
      },
    ],
  },
  {
    name: 'postgres: a message completes before it claims',
    patches: [
      {
        file: `${folder}/batch/batched-calls.ts`,
        find: '    ...batchedClaim(requests),\n    ...batchedComplete(requests),\n',
        replace: '    ...batchedComplete(requests),\n    ...batchedClaim(requests),\n',
      },
    ],
    caughtBy: [
      {
        path: `${folder}/keys/lock-order.pg.test.ts`,
        test: 'holds no row of its own while a claim of the same message waits for another process',
      },
    ],
  },
  {
    name: 'postgres: a message that waits for a lock holds up all others',
    patches: [
      { file: `${folder}/batch/carrier.ts`, find: 'const heldMsMax = 50', replace: 'const heldMsMax = 3_600_000' },
    ],
    caughtBy: [
      {
        path: `${folder}/batch/carrier.test.ts`,
        test: 'goes on without a message that is held up, however many there are',
      },
    ],
  },
  {
    name: 'postgres: a sender keeps the last connection of a pool',
    patches: [
      {
        file: `${folder}/connection/batch-sender.ts`,
        find: 'return hasSpare(options.pool) && systemClock',
        replace: 'return (hasSpare(options.pool) || true) && systemClock',
      },
    ],
    caughtBy: [
      { path: `${folder}/connection/batch-sender.pg.test.ts`, test: 'gives way to others that wait for the pool' },
    ],
  },
  {
    name: 'postgres: a sender uses a connection that broke while it was kept',
    patches: [
      {
        file: `${folder}/connection/batch-sender.ts`,
        find: 'sender.kept?.client === client && letGo(sender, sender.kept, error)',
        replace: 'sender.kept?.client === client && error',
      },
    ],
    caughtBy: [
      {
        path: `${folder}/connection/batch-sender.pg.test.ts`,
        test: 'is not failed by a connection that broke while it was kept',
      },
    ],
  },
  guardless('complete', 'completions without the fence', without(completes, 'k.fence = 1 and '), othersAreRefused),
  guardless(
    'complete',
    'completions without the claim id',
    without(completes, ' and k.claim_id = a.claim_id'),
    eachItsEnd,
  ),
  guardless(
    'complete',
    'completions without the state',
    without(completes, ' and k.state = ${state.in_progress}'),
    eachItsEnd,
  ),
  guardless('heartbeat', 'heartbeats without the fence', without(beats, 'k.fence = a.fence and '), othersAreRefused),
  guardless('heartbeat', 'heartbeats without the claim id', without(beats, ' and k.claim_id = a.claim_id'), eachItsEnd),
  guardless(
    'heartbeat',
    'heartbeats without the state',
    without(beats, ' and k.state = ${state.in_progress}'),
    eachItsEnd,
  ),
  guardless(
    'complete',
    'completions that counts what was completed before as its own',
    [
      'and k.state = ${state.completed}\n      and k.xmin = pg_catalog.pg_current_xact_id_if_assigned()::xid);',
      'and k.state = ${state.completed});',
    ],
    othersAreRefused,
  ),
  guardless(
    'complete',
    'completions that does not ask why a row was not written',
    [`isWritten(each.claim.id) ? 'written' : sendAlone(each)`, `isWritten(each.claim.id) ? 'written' : 'claim-lost'`],
    eachItsEnd,
  ),
  {
    name: 'postgres: a batch in the order in which its calls came',
    patches: [
      {
        file: `${folder}/sql/columns.ts`,
        find: 'items.toSorted((a, b) => (idOf(a) < idOf(b) ? -1 : 1))',
        replace: 'items.toSorted((a, b) => (idOf(a) < idOf(b) ? 0 : 0))',
      },
    ],
    caughtBy: [inOrder('completions'), inOrder('heartbeats')],
  },
  {
    name: 'postgres: a batch claims what it has not won',
    patches: [
      {
        file: `${folder}/keys/claim-sql.ts`,
        find: 'if won = pg_catalog.cardinality(ids) then return; end if;',
        replace: 'if won > 0 then return; end if;',
      },
    ],
    caughtBy: [
      { path: `${folder}/batch/batched-calls.pg.test.ts`, test: 'claims new keys and sees old ones in one batch' },
    ],
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
        find: 'if won = pg_catalog.cardinality(ids) then return; end if;',
        replace: 'if won = cardinality(ids) then return; end if;',
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
