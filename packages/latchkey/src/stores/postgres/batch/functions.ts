/**
 * The batches, as functions of the database. Inside a function a plan is kept by the server's own session, so that neither a
 * prepared statement nor any other state of a client is needed, and PgBouncer in transaction mode may stand in between; and
 * its settings hold for the function alone.
 */
import { milliseconds, state } from '../sql/fragments.ts'
import type { Dialect } from '../sql/names.ts'
import { ownPath } from '../sql/functions.ts'
import { oneRowFunction } from './single-row.ts'

/**
 * The plan is pinned: with these off there is one way left, the primary key, on a new table of which the planner knows nothing
 * as on a large one.
 */
const byPrimaryKey = `language plpgsql set ${ownPath}
  set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
  set plan_cache_mode = force_generic_plan set jit = off`

/** A batch waits for nobody for long: who is in the way is met alone, by the statement for one row. */
const pinned = `${byPrimaryKey} set lock_timeout = '50ms'`

export function batchFunctions(sql: Dialect): string {
  return oneRowFunction(sql) + claimMany(sql) + completeMany(sql) + heartbeatMany(sql) + readMany(sql)
}

/**
 * Returns the rows that were there, and nothing for those that were granted: a fresh row has fence 1 and one attempt. Atomic as
 * the statement for one row: the primary key is the arbiter. Rows that can be seen are not offered to it, so a replay neither
 * locks nor waits. A row met by the insert but gone at the look is nobody's answer: all of it is done again.
 */
function claimMany(sql: Dialect): string {
  return `create function ${sql.functions.claimMany}(ids uuid[], claim_ids uuid[], fingerprints bytea[], recoveries smallint[],
  lease_ms float8[], expires_in_ms float8[], scopes text[], operations text[], descriptions text[])
returns setof ${sql.keys} ${pinned} as $latchkey$
declare
  won uuid[];
  seen bigint;
begin
  with granted as (
    insert into ${sql.keys} as k (id, claim_id, fence, created_at, granted_at, expires_at, locked_until,
      attempts, state, recovery, fingerprint, scope, operation, description)
    select a.id, a.claim_id, 1, t.now, t.now, t.now + ${milliseconds('a.expires_in_ms')}, t.now + ${milliseconds('a.lease_ms')},
      1, ${state.in_progress}, a.recovery, a.fingerprint, a.scope, a.operation, a.description
    from (select ${sql.now} as now offset 0) t,
      unnest(ids, claim_ids, fingerprints, recoveries, lease_ms, expires_in_ms, scopes, operations, descriptions)
        a (id, claim_id, fingerprint, recovery, lease_ms, expires_in_ms, scope, operation, description)
    where not exists (select from ${sql.keys} s where s.id = a.id)
    order by a.id
    on conflict (id) do nothing
    returning k.id
  )
  select coalesce(pg_catalog.array_agg(g.id), '{}') into won from granted g;
  if pg_catalog.cardinality(won) = pg_catalog.cardinality(ids) then return; end if;
  return query select k.* from pg_catalog.unnest(ids) a (id) join ${sql.keys} k on k.id = a.id where a.id <> all (won);
  get diagnostics seen = row_count;
  if seen + pg_catalog.cardinality(won) <> pg_catalog.cardinality(ids) then
    raise serialization_failure using message = 'a row came and went while its batch was claimed';
  end if;
end $latchkey$;

`
}

/**
 * Returns null when all were written, and otherwise the ids of those that were. Only for rows at fence 1 and outcomes that are
 * kept with their key. An update promises no order, so the rows are locked first, by identity: two batches, or a batch and
 * the reaper, never wait for each other in a circle. What is locked stays in its place, and is found there without the index;
 * a row that changed while its lock was waited for is in a place that this statement does not see, and is met alone.
 */
function completeMany(sql: Dialect): string {
  return `create function ${sql.functions.completeMany}(ids uuid[], claim_ids uuid[], retention_ms float8[], outcomes bytea[])
returns uuid[] ${pinned} as $latchkey$
declare
  written uuid[];
begin
  with mine as materialized (
    select a.*, k.ctid as place from unnest(ids, claim_ids, retention_ms, outcomes) a (id, claim_id, retention_ms, outcome)
    join ${sql.keys} k on k.id = a.id
    where k.fence = 1 and k.claim_id = a.claim_id and k.state = ${state.in_progress}
    order by k.id for update of k
  ), done as (
    update ${sql.keys} k set state = ${state.completed}, locked_until = null, completed_at = ${sql.now},
      outcome = m.outcome, expires_at = greatest(k.expires_at, ${sql.now} + ${milliseconds('m.retention_ms')})
    from mine m
    where k.ctid = m.place and k.id = m.id and k.fence = 1 and k.claim_id = m.claim_id and k.state = ${state.in_progress}
    returning k.id
  )
  select coalesce(pg_catalog.array_agg(d.id), '{}') into written from done d;
  return case when pg_catalog.cardinality(written) < pg_catalog.cardinality(ids) then written end;
end $latchkey$;

`
}

/** Returns as the batch of completions, and locks in the same order. */
function heartbeatMany(sql: Dialect): string {
  return `create function ${sql.functions.heartbeatMany}(ids uuid[], fences float8[], claim_ids uuid[], lease_ms float8[])
returns uuid[] ${pinned} as $latchkey$
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

function readMany(sql: Dialect): string {
  return `create function ${sql.functions.readMany}(ids uuid[]) returns setof ${sql.keys} ${pinned} as $latchkey$
begin
  return query select k.* from pg_catalog.unnest(ids) a (id) join ${sql.keys} k on k.id = a.id;
end $latchkey$;

`
}
