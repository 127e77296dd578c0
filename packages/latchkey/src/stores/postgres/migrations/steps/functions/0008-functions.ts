/** The functions of the eighth migration, to the letter what databases have: they never change. The ninth drops them. */

/** `schema`: quoted. */
export function functions8(schema: string): string {
  return claims(schema) + answers(schema) + atomic(schema) + outbox(schema)
}

function claims(schema: string): string {
  return `create function ${schema}.one_row_8() returns boolean language plpgsql volatile cost 100000
set search_path = pg_catalog, pg_temp as $latchkey$
begin
  return true;
end $latchkey$;

create function ${schema}.claim_many_8(ids uuid[], claim_ids uuid[], fingerprints bytea[], recoveries smallint[],
  lease_ms float8[], expires_in_ms float8[], scopes text[], operations text[], descriptions text[])
returns setof ${schema}.keys language plpgsql set search_path = pg_catalog, pg_temp
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
    from (select pg_catalog.clock_timestamp() as now offset 0) t,
      unnest(ids, claim_ids, fingerprints, recoveries, lease_ms, expires_in_ms, scopes, operations, descriptions)
        a (id, claim_id, fingerprint, recovery, lease_ms, expires_in_ms, scope, operation, description)
    where not exists (select from ${schema}.keys s where s.id = a.id)
    order by a.id
    on conflict (id) do nothing
    returning k.id
  )
  select coalesce(pg_catalog.array_agg(g.id), '{}') into won from granted g;
  if pg_catalog.cardinality(won) = pg_catalog.cardinality(ids) then return; end if;
  return query select k.* from pg_catalog.unnest(ids) a (id) join ${schema}.keys k on k.id = a.id where a.id <> all (won);
  get diagnostics seen = row_count;
  if seen + pg_catalog.cardinality(won) <> pg_catalog.cardinality(ids) then
    raise serialization_failure using message = 'a row came and went while its batch was claimed';
  end if;
end $latchkey$;

`
}

function answers(schema: string): string {
  return `create function ${schema}.complete_many_8(ids uuid[], claim_ids uuid[], retention_ms float8[], outcomes bytea[])
returns uuid[] language plpgsql set search_path = pg_catalog, pg_temp
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
    update ${schema}.keys k set state = 2, locked_until = null, completed_at = pg_catalog.clock_timestamp(),
      outcome = m.outcome, expires_at = greatest(k.expires_at, pg_catalog.clock_timestamp() + (m.retention_ms::float8 * interval '1 millisecond'))
    from mine m
    where k.ctid = m.place and k.id = m.id and k.fence = 1 and k.claim_id = m.claim_id and k.state = 1
    returning k.id
  )
  select coalesce(pg_catalog.array_agg(d.id), '{}') into written from done d;
  return case when pg_catalog.cardinality(written) < pg_catalog.cardinality(ids) then written end;
end $latchkey$;

create function ${schema}.heartbeat_many_8(ids uuid[], fences float8[], claim_ids uuid[], lease_ms float8[])
returns uuid[] language plpgsql set search_path = pg_catalog, pg_temp
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
    update ${schema}.keys k set locked_until = pg_catalog.clock_timestamp() + (m.lease_ms::float8 * interval '1 millisecond')
    from mine m
    where k.id = m.id and k.fence = m.fence and k.claim_id = m.claim_id and k.state = 1
    returning k.id
  )
  select coalesce(pg_catalog.array_agg(d.id), '{}') into written from done d;
  return case when pg_catalog.cardinality(written) < pg_catalog.cardinality(ids) then written end;
end $latchkey$;

create function ${schema}.read_many_8(ids uuid[]) returns setof ${schema}.keys language plpgsql set search_path = pg_catalog, pg_temp
  set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
  set plan_cache_mode = force_generic_plan set jit = off set lock_timeout = '50ms' as $latchkey$
begin
  return query select k.* from pg_catalog.unnest(ids) a (id) join ${schema}.keys k on k.id = a.id;
end $latchkey$;

`
}

function atomic(schema: string): string {
  return `create function ${schema}.reserve_8(lock_id bigint, key_id uuid) returns text
language plpgsql set search_path = pg_catalog, pg_temp as $latchkey$
declare
  locked boolean := pg_catalog.pg_try_advisory_xact_lock(lock_id);
begin
  perform from ${schema}.keys k where k.id = key_id and ${schema}.one_row_8();
  return case when locked then 't' else 'f' end || case when found then 't' else 'f' end || pg_catalog.now()::text;
end $latchkey$;

create function ${schema}.record_fresh_8(key_id uuid, key_claim_id uuid, key_fingerprint bytea, retention_ms float8,
  key_scope text, key_operation text, key_description text, key_outcome bytea, reserved_at text) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp as $latchkey$
declare
  done_at timestamptz := pg_catalog.clock_timestamp();
begin
  if pg_catalog.now() = reserved_at::timestamptz then
    insert into ${schema}.keys (id, claim_id, fence, created_at, granted_at, completed_at, expires_at,
      attempts, state, recovery, fingerprint, scope, operation, description, outcome)
    values (key_id, key_claim_id, 1, done_at, done_at, done_at, done_at + (retention_ms::float8 * interval '1 millisecond'),
      1, 2, 1, key_fingerprint, key_scope, key_operation, key_description, key_outcome)
    on conflict (id) do nothing;
    if found then return true; end if;
  end if;
  return false;
end $latchkey$;

create function ${schema}.record_last_8(key_id uuid, key_claim_id uuid, key_fingerprint bytea, retention_ms float8,
  key_scope text, key_operation text, key_description text, key_outcome bytea, reserved_at text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $latchkey$
declare
  done_at timestamptz := pg_catalog.clock_timestamp();
begin
  if pg_catalog.now() = reserved_at::timestamptz then
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

function outbox(schema: string): string {
  return `create function ${schema}.outbox_next_8(of_lane smallint, of_fence bigint, of_lease text, message_max integer,
  after_xid text, after_id bigint)
returns table (crashes smallint, suspects boolean, retries boolean, id text, xid text, blocked boolean, topic text,
  aggregate text, dedup_id text, payload bytea, headers text, created_at_ms float8) stable language plpgsql set search_path = pg_catalog, pg_temp
  set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set enable_hashjoin = off
  set enable_mergejoin = off set plan_cache_mode = force_generic_plan set jit = off as $latchkey$
#variable_conflict use_column
declare l record;
begin
  select l.crashes, exists (select from ${schema}.outbox_parked p where p.lane = l.lane and p.suspect and p.parked_at is null and p.due_at <= (select pg_catalog.clock_timestamp()) and not exists (select from ${schema}.outbox_parked q
      where q.lane = p.lane and q.aggregate = p.aggregate and (q.xid, q.id) < (p.xid, p.id) and q.blocks
        and (q.parked_at is not null or q.due_at is null or q.due_at > pg_catalog.clock_timestamp()))) as suspects, exists (select from ${schema}.outbox_parked p where p.lane = l.lane and not p.suspect and p.parked_at is null and p.due_at <= (select pg_catalog.clock_timestamp()) and not exists (select from ${schema}.outbox_parked q
      where q.lane = p.lane and q.aggregate = p.aggregate and (q.xid, q.id) < (p.xid, p.id) and q.blocks
        and (q.parked_at is not null or q.due_at is null or q.due_at > pg_catalog.clock_timestamp()))) as retries,
    coalesce(after_xid::xid8, l.cursor_xid) as cursor_xid, coalesce(after_id, l.cursor_id) as cursor_id
  into l from ${schema}.outbox_lanes l where l.lane = $1::smallint and l.fence = $2::bigint and l.lease_id = $3::text;
  if not found then return; end if;
  crashes := l.crashes;
  suspects := l.suspects;
  retries := l.retries;
  return next;
  return query select null::smallint, null::boolean, null::boolean, m.id::text, m.xid::text, m.blocked, m.topic,
    m.aggregate, m.dedup_id, case when m.blocked then '' else m.payload end, m.headers,
    pg_catalog.round(pg_catalog.date_part('epoch', m.created_at) * 1000000) / 1000
  from (
    select o.*, o.aggregate is not null and exists (select from ${schema}.outbox_parked q
      where q.lane = o.lane and q.aggregate = o.aggregate and q.blocks) as blocked
    from ${schema}.outbox o where o.lane = of_lane and (o.xid, o.id) > (l.cursor_xid, l.cursor_id) and o.xid < pg_catalog.pg_snapshot_xmin(pg_catalog.pg_current_snapshot())
    order by o.xid, o.id limit message_max) m
  order by m.xid, m.id;
end $latchkey$;

create function ${schema}.outbox_delivered_8(of_lane smallint, of_fence bigint, of_lease text,
  through_xid text, through_id bigint, lease_ms float8, ids bigint[], downstream_ids text[])
returns boolean language plpgsql set search_path = pg_catalog, pg_temp
  set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set enable_hashjoin = off
  set enable_mergejoin = off set plan_cache_mode = force_generic_plan set jit = off as $latchkey$
begin
  update ${schema}.outbox_lanes l set crashes = 0, probing = false,
        cursor_xid = coalesce($4::text::xid8, l.cursor_xid), cursor_id = coalesce($5::bigint, l.cursor_id),
        lease_id = case when $6::float8 is null then null else l.lease_id end,
        locked_until = pg_catalog.clock_timestamp() + ($6::float8 * interval '1 millisecond')
      where l.lane = $1::smallint and l.fence = $2::bigint and l.lease_id = $3::text;
  if not found then return false; end if;
  if downstream_ids is not null then
    insert into ${schema}.outbox_delivered (id, downstream_id, at)
      select d.id, d.downstream_id, pg_catalog.clock_timestamp() from  unnest($7::bigint[], $8::text[]) d (id, downstream_id)
      where d.downstream_id is not null on conflict (id) do nothing;
  end if;
  if exists (select from ${schema}.outbox_parked p where p.lane = of_lane) then
    with gone as (
      delete from ${schema}.outbox_parked p where p.id = any(ids) returning p.lane, p.aggregate
    ), freed as (
      select distinct g.lane, g.aggregate from gone g where g.aggregate is not null
    )
    update ${schema}.outbox_parked p set due_at = pg_catalog.clock_timestamp()
      from freed cross join lateral (
        select q.id from ${schema}.outbox_parked q
        where q.lane = freed.lane and q.aggregate = freed.aggregate and q.due_at is null and q.parked_at is null
        order by q.xid, q.id limit 100) next
      where p.id = next.id;
  end if;
  return true;
end $latchkey$;

`
}
