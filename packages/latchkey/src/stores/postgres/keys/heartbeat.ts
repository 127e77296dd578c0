/** A heartbeat renews the owner's lease. */
import type { Claim, OwnerResult, Store } from '../../../ports/store.ts'
import type { Batching } from '../batch/batched-calls.ts'
import { prepared, preparedForMany } from '../connection/prepared.ts'
import type { RunStatement } from '../connection/statement.ts'
import { areUuids, type Column, float8s, inOrder, uuids } from '../sql/columns.ts'
import { milliseconds, state } from '../sql/fragments.ts'
import { batchSettings } from '../sql/functions.ts'
import type { Dialect } from '../sql/names.ts'
import { idsWritten, idText, mine, ofArray, owner } from './owner.ts'

export function heartbeatCall(sql: Dialect, run: RunStatement): Pick<Store, 'heartbeat'> {
  const text = heartbeatStatement(sql)
  return {
    async heartbeat(claim, leaseMs) {
      const rows = await run(text, [...owner(claim), leaseMs])
      return rows.length > 0 ? 'written' : 'claim-lost'
    },
  }
}

interface Heartbeat {
  readonly claim: Claim
  readonly leaseMs: number
}

const heartbeatColumns: readonly Column<Heartbeat>[] = [
  uuids(each => each.claim.id),
  float8s(each => each.claim.fence),
  uuids(each => each.claim.claimId),
  float8s(each => each.leaseMs),
]

export function batchedHeartbeat({ sql, single, together }: Batching): Pick<Store, 'heartbeat'> {
  const many = preparedForMany(prepared('heartbeat', heartbeatManyStatement(sql)), heartbeatColumns)
  const batched = together<Heartbeat, OwnerResult>({
    name: 'heartbeat',
    keyOf: ({ claim: { id } }) => id,
    sendAlone: ({ claim, leaseMs }) => single.heartbeat(claim, leaseMs),
    many: heartbeats => many(inOrder(heartbeats, ({ claim }) => claim.id)),
    resultsOf(heartbeats, answer) {
      const isWritten = idsWritten(answer)
      return heartbeats.map(each => (isWritten(each.claim.id) ? 'written' : 'claim-lost'))
    },
  })
  return {
    heartbeat: (claim, leaseMs) => (areUuids(claim) ? batched({ claim, leaseMs }) : single.heartbeat(claim, leaseMs)),
  }
}

/** Atomic: one update of one row. The clock is not compared: an overdue owner that was not replaced keeps its claim. */
function heartbeatStatement(sql: Dialect): string {
  return `update ${sql.keys} k set locked_until = ${sql.now} + ${milliseconds('$4')}
    where ${mine} and k.state = ${state.in_progress} returning 1`
}

function heartbeatManyStatement({ functions }: Dialect): string {
  return `select ${idText(`${functions.heartbeatMany}($1::uuid[], $2::float8[], $3::uuid[], $4::float8[])`)} as written`
}

/** Returns as the batch of completions, and locks in the same order. */
export function heartbeatManyFunction(sql: Dialect): string {
  return `create function ${sql.functions.heartbeatMany}(ids uuid[], fences float8[], claim_ids uuid[], lease_ms float8[])
returns uuid[] ${batchSettings} as $latchkey$
declare
  beaten_at timestamptz := ${sql.now};
  written uuid[];
begin
  with done as (
    update ${sql.keys} k set locked_until = beaten_at + ${milliseconds('a.lease_ms')}
    from unnest(ids, fences, claim_ids, lease_ms) a (id, fence, claim_id, lease_ms)
    where ${ofArray('a.id')} and k.fence = a.fence and k.claim_id = a.claim_id and k.state = ${state.in_progress}
    returning k.id
  )
  select coalesce(pg_catalog.array_agg(d.id), '{}') into written from done d;
  return case when pg_catalog.cardinality(written) < pg_catalog.cardinality(ids) then written end;
end $latchkey$;

`
}
