/** The owner's lease, renewed. */
import type { Store } from '../../../ports/store.ts'
import type { Run } from '../connection/statement.ts'
import { milliseconds, state } from '../sql/fragments.ts'
import { batchSettings } from '../sql/functions.ts'
import type { Dialect } from '../sql/names.ts'
import { mine, owner } from './owner.ts'

export function heartbeatCall(sql: Dialect, run: Run): Pick<Store, 'heartbeat'> {
  const text = heartbeatStatement(sql)
  return {
    async heartbeat(claim, leaseMs) {
      const rows = await run(text, [...owner(claim), leaseMs])
      return rows.length > 0 ? 'written' : 'claim-lost'
    },
  }
}

/** Atomic: one update of one row. The clock is not asked: an overdue owner that nobody replaced goes on. */
function heartbeatStatement(sql: Dialect): string {
  return `update ${sql.keys} k set locked_until = ${sql.now} + ${milliseconds('$4')}
    where ${mine} and k.state = ${state.in_progress} returning 1`
}

/** Returns as the batch of completions, and locks in the same order. */
export function heartbeatManyFunction(sql: Dialect): string {
  return `create function ${sql.functions.heartbeatMany}(ids uuid[], fences float8[], claim_ids uuid[], lease_ms float8[])
returns uuid[] ${batchSettings} as $latchkey$
declare
  written uuid[];
begin
  with mine as materialized (
    select a.* from unnest(ids, fences, claim_ids, lease_ms) a (id, fence, claim_id, lease_ms)
    join ${sql.keys} k on k.id = a.id
    where k.fence = a.fence and k.claim_id = a.claim_id and k.state = ${state.in_progress}
    order by k.id for update of k
  ), done as (
    update ${sql.keys} k set locked_until = ${sql.now} + ${milliseconds('m.lease_ms')}
    from mine m
    where k.id = m.id and k.fence = m.fence and k.claim_id = m.claim_id and k.state = ${state.in_progress}
    returning k.id
  )
  select coalesce(pg_catalog.array_agg(d.id), '{}') into written from done d;
  return case when pg_catalog.cardinality(written) < pg_catalog.cardinality(ids) then written end;
end $latchkey$;

`
}
