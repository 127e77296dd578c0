/** A heartbeat renews the owner's lease. */
import type { Claim, OwnerResult, Store } from '../../../ports/store.ts'
import type { Batching } from '../batch/batching.ts'
import { prepared } from '../connection/prepared.ts'
import type { RunStatement } from '../connection/statement.ts'
import { float8Array, uuidArray } from '../sql/binary-array.ts'
import { milliseconds, state } from '../sql/fragments.ts'
import { batchSettings } from '../sql/functions.ts'
import type { Dialect } from '../sql/names.ts'
import { areUuids, inOrder } from '../sql/values.ts'
import { idsWritten, mine, ofArray, owner } from './owner.ts'

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

export function batchedHeartbeat({ sql, send, single, together }: Batching): Pick<Store, 'heartbeat'> {
  const statement = prepared(heartbeatManyStatement(sql))
  const batched = together<Heartbeat, OwnerResult>({
    name: 'heartbeat',
    keyOf: ({ claim: { id } }) => id,
    sendAlone: ({ claim, leaseMs }) => single.heartbeat(claim, leaseMs),
    async sendMany(heartbeats) {
      const isWritten = idsWritten(await send(statement, heartbeatArrays(heartbeats)))
      return heartbeats.map(each => (isWritten(each.claim.id) ? 'written' : 'claim-lost'))
    },
  })
  return {
    heartbeat: (claim, leaseMs) => (areUuids(claim) ? batched({ claim, leaseMs }) : single.heartbeat(claim, leaseMs)),
  }
}

function heartbeatArrays(heartbeats: readonly Heartbeat[]): unknown[] {
  const sent = inOrder(heartbeats, ({ claim }) => claim.id)
  return [
    uuidArray(sent.map(each => each.claim.id)),
    float8Array(sent.map(each => each.claim.fence)),
    uuidArray(sent.map(each => each.claim.claimId)),
    float8Array(sent.map(each => each.leaseMs)),
  ]
}

/** Atomic: one update of one row. The clock is not compared: an overdue owner that was not replaced keeps its claim. */
function heartbeatStatement(sql: Dialect): string {
  return `update ${sql.keys} k set locked_until = ${sql.now} + ${milliseconds('$4')}
    where ${mine} and k.state = ${state.in_progress} returning 1`
}

function heartbeatManyStatement({ functions }: Dialect): string {
  return `select ${functions.heartbeatMany}($1::uuid[], $2::float8[], $3::uuid[], $4::float8[])::text[] as written`
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
