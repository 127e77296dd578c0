/** The functions of the seventh migration, to the letter, as those of the sixth. */

/** `schema`: quoted. */
export function functions7(schema: string): string {
  return `create function ${schema}.outbox_next(of_lane smallint, of_fence bigint, of_lease text, message_max integer,
  after_xid text, after_id bigint)
returns table (crashes smallint, suspects boolean, retries boolean, id text, xid text, blocked boolean, topic text,
  aggregate text, dedup_id text, payload bytea, headers text, created_at_ms float8) stable language plpgsql
  set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set enable_hashjoin = off
  set enable_mergejoin = off set plan_cache_mode = force_generic_plan set jit = off as $latchkey$
#variable_conflict use_column
declare l record;
begin
  select l.crashes, exists (select from ${schema}.outbox_parked p where p.lane = l.lane and p.suspect and p.parked_at is null and p.due_at <= (select clock_timestamp()) and not exists (select from ${schema}.outbox_parked q
      where q.lane = p.lane and q.aggregate = p.aggregate and (q.xid, q.id) < (p.xid, p.id) and q.blocks
        and (q.parked_at is not null or q.due_at is null or q.due_at > clock_timestamp()))) as suspects, exists (select from ${schema}.outbox_parked p where p.lane = l.lane and not p.suspect and p.parked_at is null and p.due_at <= (select clock_timestamp()) and not exists (select from ${schema}.outbox_parked q
      where q.lane = p.lane and q.aggregate = p.aggregate and (q.xid, q.id) < (p.xid, p.id) and q.blocks
        and (q.parked_at is not null or q.due_at is null or q.due_at > clock_timestamp()))) as retries,
    coalesce(after_xid::xid8, l.cursor_xid) as cursor_xid, coalesce(after_id, l.cursor_id) as cursor_id
  into l from ${schema}.outbox_lanes l where l.lane = $1::smallint and l.fence = $2::bigint and l.lease_id = $3::text;
  if not found then return; end if;
  crashes := l.crashes;
  suspects := l.suspects;
  retries := l.retries;
  return next;
  return query select null::smallint, null::boolean, null::boolean, m.id::text, m.xid::text, m.blocked, m.topic,
    m.aggregate, m.dedup_id, case when m.blocked then '' else m.payload end, m.headers,
    round(date_part('epoch', m.created_at) * 1000000) / 1000
  from (
    select o.*, o.aggregate is not null and exists (select from ${schema}.outbox_parked q
      where q.lane = o.lane and q.aggregate = o.aggregate and q.blocks) as blocked
    from ${schema}.outbox o where o.lane = of_lane and (o.xid, o.id) > (l.cursor_xid, l.cursor_id) and o.xid < pg_snapshot_xmin(pg_current_snapshot())
    order by o.xid, o.id limit message_max) m
  order by m.xid, m.id;
end $latchkey$;

create function ${schema}.outbox_delivered(of_lane smallint, of_fence bigint, of_lease text,
  through_xid text, through_id bigint, lease_ms float8, ids bigint[], downstream_ids text[])
returns boolean language plpgsql
  set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set enable_hashjoin = off
  set enable_mergejoin = off set plan_cache_mode = force_generic_plan set jit = off as $latchkey$
begin
  update ${schema}.outbox_lanes l set crashes = 0, probing = false,
        cursor_xid = coalesce($4::text::xid8, l.cursor_xid), cursor_id = coalesce($5::bigint, l.cursor_id),
        lease_id = case when $6::float8 is null then null else l.lease_id end,
        locked_until = clock_timestamp() + ($6::float8 * interval '1 millisecond')
      where l.lane = $1::smallint and l.fence = $2::bigint and l.lease_id = $3::text;
  if not found then return false; end if;
  if downstream_ids is not null then
    insert into ${schema}.outbox_delivered (id, downstream_id, at)
      select d.id, d.downstream_id, clock_timestamp() from  unnest($7::bigint[], $8::text[]) d (id, downstream_id)
      where d.downstream_id is not null on conflict (id) do nothing;
  end if;
  if exists (select from ${schema}.outbox_parked p where p.lane = of_lane) then
    with gone as (
      delete from ${schema}.outbox_parked p where p.id = any(ids) returning p.lane, p.aggregate
    ), freed as (
      select distinct g.lane, g.aggregate from gone g where g.aggregate is not null
    )
    update ${schema}.outbox_parked p set due_at = clock_timestamp()
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
