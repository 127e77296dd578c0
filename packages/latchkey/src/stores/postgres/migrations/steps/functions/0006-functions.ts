/** The functions of the sixth migration, to the letter what databases have: they never change. The ninth drops them. */

/** `schema`: quoted. */
export function functions6(schema: string): string {
  return claims(schema) + answers(schema) + atomic(schema)
}

function claims(schema: string): string {
  return `create function ${schema}.one_row() returns boolean language plpgsql volatile cost 100000 as $latchkey$
begin
  return true;
end $latchkey$;

create function ${schema}.claim_many(ids uuid[], claim_ids uuid[], fingerprints bytea[], recoveries smallint[],
  lease_ms float8[], expires_in_ms float8[], scopes text[], operations text[], descriptions text[])
returns setof ${schema}.keys language plpgsql
  set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
  set plan_cache_mode = force_generic_plan set jit = off set lock_timeout = '50ms' as $latchkey$
declare
  won uuid[];
  seen bigint;
begin
  with granted as (
    insert into ${schema}.keys as k (id, claim_id, fence, created_at, granted_at, expires_at, locked_until,
      attempts, state, recovery, fingerprint, scope, operation, description)
    select a.id, a.claim_id, 1, t.now, t.now, t.now + (a.expires_in_ms::float8 * interval '1 millisecond'), t.now + (a.lease_ms::float8 * interval '1 millisecond'),
      1, 1, a.recovery, a.fingerprint, a.scope, a.operation, a.description
    from (select clock_timestamp() as now offset 0) t,
      unnest(ids, claim_ids, fingerprints, recoveries, lease_ms, expires_in_ms, scopes, operations, descriptions)
        a (id, claim_id, fingerprint, recovery, lease_ms, expires_in_ms, scope, operation, description)
    where not exists (select from ${schema}.keys s where s.id = a.id)
    order by a.id
    on conflict (id) do nothing
    returning k.id
  )
  select coalesce(array_agg(g.id), '{}') into won from granted g;
  if cardinality(won) = cardinality(ids) then return; end if;
  return query select k.* from unnest(ids) a (id) join ${schema}.keys k on k.id = a.id where a.id <> all (won);
  get diagnostics seen = row_count;
  if seen + cardinality(won) <> cardinality(ids) then
    raise serialization_failure using message = 'a row came and went while its batch was claimed';
  end if;
end $latchkey$;

`
}

function answers(schema: string): string {
  return `create function ${schema}.complete_many(ids uuid[], claim_ids uuid[], retention_ms float8[], outcomes bytea[])
returns uuid[] language plpgsql
  set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
  set plan_cache_mode = force_generic_plan set jit = off set lock_timeout = '50ms' as $latchkey$
declare
  written uuid[];
begin
  with mine as materialized (
    select a.*, k.ctid as place from unnest(ids, claim_ids, retention_ms, outcomes) a (id, claim_id, retention_ms, outcome)
    join ${schema}.keys k on k.id = a.id
    where k.fence = 1 and k.claim_id = a.claim_id and k.state = 1
    order by k.id for update of k
  ), done as (
    update ${schema}.keys k set state = 2, locked_until = null, completed_at = clock_timestamp(),
      outcome = m.outcome, expires_at = greatest(k.expires_at, clock_timestamp() + (m.retention_ms::float8 * interval '1 millisecond'))
    from mine m
    where k.ctid = m.place and k.id = m.id and k.fence = 1 and k.claim_id = m.claim_id and k.state = 1
    returning k.id
  )
  select coalesce(array_agg(d.id), '{}') into written from done d;
  return case when cardinality(written) < cardinality(ids) then written end;
end $latchkey$;

create function ${schema}.heartbeat_many(ids uuid[], fences float8[], claim_ids uuid[], lease_ms float8[])
returns uuid[] language plpgsql
  set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
  set plan_cache_mode = force_generic_plan set jit = off set lock_timeout = '50ms' as $latchkey$
declare
  written uuid[];
begin
  with mine as materialized (
    select a.* from unnest(ids, fences, claim_ids, lease_ms) a (id, fence, claim_id, lease_ms)
    join ${schema}.keys k on k.id = a.id
    where k.fence = a.fence and k.claim_id = a.claim_id and k.state = 1
    order by k.id for update of k
  ), done as (
    update ${schema}.keys k set locked_until = clock_timestamp() + (m.lease_ms::float8 * interval '1 millisecond')
    from mine m
    where k.id = m.id and k.fence = m.fence and k.claim_id = m.claim_id and k.state = 1
    returning k.id
  )
  select coalesce(array_agg(d.id), '{}') into written from done d;
  return case when cardinality(written) < cardinality(ids) then written end;
end $latchkey$;

create function ${schema}.read_many(ids uuid[]) returns setof ${schema}.keys language plpgsql
  set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
  set plan_cache_mode = force_generic_plan set jit = off set lock_timeout = '50ms' as $latchkey$
begin
  return query select k.* from unnest(ids) a (id) join ${schema}.keys k on k.id = a.id;
end $latchkey$;

`
}

function atomic(schema: string): string {
  return `create function ${schema}.reserve(lock_id bigint, key_id uuid) returns text
language plpgsql as $latchkey$
declare
  locked boolean := pg_try_advisory_xact_lock(lock_id);
begin
  perform from ${schema}.keys k where k.id = key_id and ${schema}.one_row();
  return case when locked then 't' else 'f' end || case when found then 't' else 'f' end || now()::text;
end $latchkey$;

create function ${schema}.record_fresh(key_id uuid, key_claim_id uuid, key_fingerprint bytea, retention_ms float8,
  key_scope text, key_operation text, key_description text, key_outcome bytea, reserved_at text) returns boolean
language plpgsql as $latchkey$
declare
  done_at timestamptz := clock_timestamp();
begin
  if now() = reserved_at::timestamptz then
    insert into ${schema}.keys (id, claim_id, fence, created_at, granted_at, completed_at, expires_at,
      attempts, state, recovery, fingerprint, scope, operation, description, outcome)
    values (key_id, key_claim_id, 1, done_at, done_at, done_at, done_at + (retention_ms::float8 * interval '1 millisecond'),
      1, 2, 1, key_fingerprint, key_scope, key_operation, key_description, key_outcome)
    on conflict (id) do nothing;
    if found then return true; end if;
  end if;
  return false;
end $latchkey$;

create function ${schema}.record_last(key_id uuid, key_claim_id uuid, key_fingerprint bytea, retention_ms float8,
  key_scope text, key_operation text, key_description text, key_outcome bytea, reserved_at text) returns void
language plpgsql as $latchkey$
declare
  done_at timestamptz := clock_timestamp();
begin
  if now() = reserved_at::timestamptz then
    insert into ${schema}.keys (id, claim_id, fence, created_at, granted_at, completed_at, expires_at,
      attempts, state, recovery, fingerprint, scope, operation, description, outcome)
    values (key_id, key_claim_id, 1, done_at, done_at, done_at, done_at + (retention_ms::float8 * interval '1 millisecond'),
      1, 2, 1, key_fingerprint, key_scope, key_operation, key_description, key_outcome)
    on conflict (id) do nothing;
    if found then return; end if;
  end if;
  raise serialization_failure using message = 'another transaction has recorded this identity, or this one was ended';
end $latchkey$;

`
}
