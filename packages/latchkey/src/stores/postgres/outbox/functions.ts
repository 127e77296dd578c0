/**
 * The usual batch, as database functions: read with one statement and settled with one. The server's session caches their plans,
 * so that no batch has to be parsed and planned.
 */
import { ownPath } from '../sql/functions.ts'
import { type Dialect, outboxNames, type OutboxNames } from '../sql/names.ts'
import { isAfterCursor, isBelowHorizon, isDeliverable, isMine } from './lanes.ts'
import { advanceLane, nameDelivered, wakeNext } from './settle.ts'

/**
 * The plan is pinned: with these off the messages are read in the order of their index and no further than the batch. Without statistics
 * the planner would read a lane's whole backlog and sort it for every batch.
 */
const pinned = `language plpgsql set ${ownPath}
  set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set enable_hashjoin = off
  set enable_mergejoin = off set plan_cache_mode = force_generic_plan set jit = off`

export function outboxFunctions(sql: Dialect): string {
  const names = outboxNames(sql)
  return nextFunction(sql, names) + deliveredFunction(sql, names)
}

/**
 * No row: the lease is lost. The first row is about the lane, and about messages set aside that are due; the others are the messages
 * after the cursor, or after where it will be. A blocked message is only named: its payload would be read for nothing. The time
 * is rounded to its microseconds: a numeric would be exact as well, and cost as much as the rest of the row.
 */
function nextFunction(sql: Dialect, names: OutboxNames): string {
  const aside = (which: string) =>
    `exists (select from ${names.parked} p where p.lane = l.lane and ${which} and ${isDeliverable(sql, names)})`
  return `create function ${sql.functions.outboxNext}(of_lane smallint, of_fence bigint, of_lease text, message_max integer,
  after_xid text, after_id bigint)
returns table (crashes smallint, suspects boolean, retries boolean, id text, xid text, blocked boolean, topic text,
  aggregate text, dedup_id text, payload bytea, headers text, created_at_ms float8) stable ${pinned} as $latchkey$
#variable_conflict use_column
declare l record;
begin
  select l.crashes, ${aside('p.suspect')} as suspects, ${aside('not p.suspect')} as retries,
    coalesce(after_xid::xid8, l.cursor_xid) as cursor_xid, coalesce(after_id, l.cursor_id) as cursor_id
  into l from ${names.lanes} l where ${isMine};
  if not found then return; end if;
  crashes := l.crashes;
  suspects := l.suspects;
  retries := l.retries;
  return next;
  return query select null::smallint, null::boolean, null::boolean, m.id::text, m.xid::text, m.blocked, m.topic,
    m.aggregate, m.dedup_id, case when m.blocked then '' else m.payload end, m.headers,
    pg_catalog.round(pg_catalog.date_part('epoch', m.created_at) * 1000000) / 1000
  from (
    select o.*, o.aggregate is not null and exists (select from ${names.parked} q
      where q.lane = o.lane and q.aggregate = o.aggregate and q.blocks) as blocked
    from ${names.outbox} o where o.lane = of_lane and ${isAfterCursor('o')} and ${isBelowHorizon('o')}
    order by o.xid, o.id limit message_max) m
  order by m.xid, m.id;
end $latchkey$;

`
}

/**
 * All of a batch was delivered, and nothing of it stands behind another one: false if the lease is lost. Only where the lane
 * has messages aside is there anything else to write than the lane's row.
 */
function deliveredFunction(sql: Dialect, names: OutboxNames): string {
  return `create function ${sql.functions.outboxDelivered}(of_lane smallint, of_fence bigint, of_lease text,
  through_xid text, through_id bigint, lease_ms float8, ids bigint[], downstream_ids text[])
returns boolean ${pinned} as $latchkey$
begin
  ${advanceLane(sql, names)};
  if not found then return false; end if;
  if downstream_ids is not null then
    ${nameDelivered(sql, names, '')};
  end if;
  if exists (select from ${names.parked} p where p.lane = of_lane) then
    with gone as (
      delete from ${names.parked} p where p.id = any(ids) returning p.lane, p.aggregate
    ), freed as (
      select distinct g.lane, g.aggregate from gone g where g.aggregate is not null
    )
    ${wakeNext(sql, names, 'freed')};
  end if;
  return true;
end $latchkey$;

`
}
