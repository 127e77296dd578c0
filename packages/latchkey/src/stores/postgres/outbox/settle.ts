/** The end of a batch, in one commit. */
import { isAllDelivered, type Outbox, type Settlement } from '../../../ports/outbox.ts'
import { waitingPositions } from '../../shared/outbox/batch.ts'
import { historyMax, wakeMax } from '../../shared/outbox/message.ts'
import type { RunStatement } from '../connection/statement.ts'
import { epochMs, milliseconds } from '../sql/fragments.ts'
import type { Dialect, OutboxNames } from '../sql/names.ts'
import { readable } from '../sql/columns.ts'
import { isMine, leaseValues } from './lanes.ts'

export function settleCall(sql: Dialect, names: OutboxNames, run: RunStatement): Outbox<unknown>['settle'] {
  const text = settleStatement(sql, names)
  const deliveredText = `select from ${sql.functions.outboxDelivered}($1, $2, $3, $4, $5, $6, $7, $8) w where w`
  return async (lease, settlement) => {
    const values = [...leaseValues(lease), ...cursorValues(settlement), ...deliveredValues(settlement)]
    const rows = isAllDelivered(settlement.batch, settlement.ends)
      ? await run(deliveredText, values)
      : await run(text, [...values, ...otherValues(settlement)])
    return rows.length === 1 ? 'written' : 'lease-lost'
  }
}

/** `$4, $5, $6`. */
function cursorValues({ batch, then }: Settlement): readonly unknown[] {
  const [xid = null, id = null] = batch.through?.split('/') ?? []
  return [xid, id, then.kind === 'keep' ? then.leaseMs : null]
}

/** `$7, $8`: null where the downstream named none, which is as a rule all of them. */
function deliveredValues({ ends }: Settlement): readonly unknown[] {
  const delivered = ends.filter(end => end.kind === 'delivered')
  const names = delivered.some(end => end.downstreamId !== undefined)
    ? delivered.map(end => (end.downstreamId === undefined ? null : readable(end.downstreamId)))
    : null
  return [delivered.map(end => end.position), names]
}

/** `$9` to `$13`. */
function otherValues({ batch, ends }: Settlement): readonly unknown[] {
  const failed = ends.filter(end => end.kind === 'failed')
  return [
    failed.map(end => end.position),
    failed.map(end => readable(end.error)),
    failed.map(end => (end.next.kind === 'retry' ? end.next.dueInMs : null)),
    failed.map(end => end.aggregate === 'block'),
    waitingPositions(batch, ends),
  ]
}

/** The lane's row, by `$1` to `$6`: moved to the end of the batch, and leased for longer or released. */
export function advanceLane({ now }: Dialect, { lanes }: OutboxNames): string {
  return `update ${lanes} l set crashes = 0, probing = false,
        cursor_xid = coalesce($4::text::xid8, l.cursor_xid), cursor_id = coalesce($5::bigint, l.cursor_id),
        lease_id = case when $6::float8 is null then null else l.lease_id end,
        locked_until = ${now} + ${milliseconds('$6')}
      where ${isMine}`
}

/** Of the messages `$7` those that have a name in `$8`. `from`: what it depends on. */
export function nameDelivered({ now }: Dialect, { delivered }: OutboxNames, from: string): string {
  return `insert into ${delivered} (id, downstream_id, at)
      select d.id, d.downstream_id, ${now} from ${from} unnest($7::bigint[], $8::text[]) d (id, downstream_id)
      where d.downstream_id is not null on conflict (id) do nothing`
}

/** Of every aggregate in `freed`, by its lane, the next messages that waited behind those that are gone. */
export function wakeNext({ now }: Dialect, { parked }: OutboxNames, freed: string): string {
  return `update ${parked} p set due_at = ${now}
      from ${freed} cross join lateral (
        select q.id from ${parked} q
        where q.lane = ${freed}.lane and q.aggregate = ${freed}.aggregate and q.due_at is null and q.parked_at is null
        order by q.xid, q.id limit ${wakeMax}) next
      where p.id = next.id`
}

/**
 * Atomic: one statement, and every part of it depends on `lease`: a relay that lost its lane changes nothing. In a usual batch
 * the lane's update is the only write. No row is touched twice: what was delivered, what failed and what waits behind are
 * different messages, and a message that is woken waited behind before.
 */
function settleStatement(sql: Dialect, names: OutboxNames): string {
  return `with lease as materialized (
      ${advanceLane(sql, names)} returning l.lane
    ), named as (
      ${nameDelivered(sql, names, 'lease,')}
    ), gone as (
      delete from ${names.parked} p using lease where p.id = any($7::bigint[])
      returning p.lane, p.aggregate
    ), failures as materialized (
      select o.id, o.xid, o.lane, o.aggregate, f.error, f.due_in_ms, f.blocks and o.aggregate is not null as blocks,
        pg_catalog.jsonb_build_object('atMs', pg_catalog.floor(${epochMs(sql.now)})::bigint, 'error', f.error) as entry
      from lease, unnest($9::bigint[], $10::text[], $11::float8[], $12::boolean[]) f (id, error, due_in_ms, blocks)
      join ${names.outbox} o on o.id = f.id
    ), ${failedPart(sql, names)}, ${behindPart(sql, names)}, ${wokenPart(sql, names)}
    select l.lane from lease l`
}

function failedPart(sql: Dialect, { parked }: OutboxNames): string {
  return `failed as (
      insert into ${parked} as p (id, xid, lane, aggregate, blocks, attempts, due_at, parked_at, cause, history)
      select f.id, f.xid, f.lane, f.aggregate, f.blocks, 1, ${sql.now} + ${milliseconds('f.due_in_ms')},
        case when f.due_in_ms is null then ${sql.now} end, f.error, pg_catalog.jsonb_build_array(f.entry)
      from failures f
      on conflict (id) do update set attempts = p.attempts + 1, blocks = excluded.blocks, suspect = false,
        due_at = excluded.due_at, parked_at = excluded.parked_at, cause = excluded.cause,
        -- Minus an index: the first entry goes when there are enough, and the one that is not there otherwise.
        history = (p.history || excluded.history)
          - case when pg_catalog.jsonb_array_length(p.history) >= ${historyMax} then 0 else ${historyMax} end
    )`
}

/**
 * Null where an earlier message of the aggregate waits, which wakes it when it is gone; due now otherwise. The first one is locked: an operator
 * may be skipping it, and who stood behind it unseen by that would wait for good. What fails in this batch counts by how it fails.
 */
function behindPart(sql: Dialect, { outbox, parked }: OutboxNames): string {
  return `heads as materialized (
      select q.aggregate, q.xid, q.id from lease
      cross join (select distinct o.aggregate from ${outbox} o where o.id = any($13::bigint[])) a
      cross join lateral (
        select q.aggregate, q.xid, q.id from ${parked} q
        where q.lane = lease.lane and q.aggregate = a.aggregate and q.blocks
          and q.id <> all($7::bigint[]) and q.id <> all($9::bigint[])
        order by q.xid, q.id limit 1 for key share) q
    ), behind as (
      insert into ${parked} (id, xid, lane, aggregate, blocks, due_at)
      select o.id, o.xid, o.lane, o.aggregate, o.aggregate is not null,
        case when not exists (select from failures f where f.aggregate = o.aggregate and f.blocks)
          and not exists (select from heads h where h.aggregate = o.aggregate and (h.xid, h.id) < (o.xid, o.id))
          then ${sql.now} end
      from lease, ${outbox} o where o.id = any($13::bigint[])
      on conflict (id) do nothing
    )`
}

function wokenPart(sql: Dialect, names: OutboxNames): string {
  return `freed as (
      select g.lane, g.aggregate from gone g where g.aggregate is not null
      union select f.lane, f.aggregate from failures f where f.aggregate is not null and not f.blocks
    ), woken as (
      ${wakeNext(sql, names, 'freed')}
    )`
}
