/** What a relay delivers next. */
import type { Batch, LaneLease, Message, Outbox } from '../../ports/outbox.ts'
import { crashesUntilSuspect, headersFrom, probeDelayMaxMs } from '../../sql/outbox-message.ts'
import type { RawNumber } from '../../sql/record-row.ts'
import type { Dialect } from './dialect.ts'
import { isAfterCursor, isBelowHorizon, isDeliverable, isMine, leaseValues } from './outbox-lanes.ts'
import type { OutboxNames } from './outbox-tables.ts'
import type { Run } from './run.ts'

type LaneRow = { readonly crashes: RawNumber; readonly suspects: boolean }

export interface MessageRow {
  readonly id: RawNumber
  readonly lane: RawNumber
  readonly topic: string
  readonly aggregate: string | null
  readonly dedup_id: string
  readonly payload: Uint8Array
  readonly headers: string
  readonly created_at_ms: RawNumber
  readonly attempts: RawNumber
  readonly crashes: RawNumber
}

type FreshRow = MessageRow & { readonly xid: string; readonly blocked: boolean }

/** The columns of `MessageRow` that the row `o` has. */
export const messageColumns = `o.id::text as id, o.lane, o.topic, o.aggregate, o.dedup_id, o.payload, o.headers,
      (extract(epoch from o.created_at) * 1000)::float8 as created_at_ms`

export function messageOf(row: MessageRow): Message {
  return {
    position: String(row.id),
    lane: Number(row.lane),
    topic: row.topic,
    aggregate: row.aggregate ?? undefined,
    dedupId: row.dedup_id,
    payload: row.payload,
    headers: headersFrom(row.headers),
    createdAtMs: Math.floor(Number(row.created_at_ms)),
    attempts: Number(row.attempts),
    crashes: Number(row.crashes),
  }
}

/**
 * The statements of one call need no common transaction: nobody but the holder of the lease moves the lane's messages, and if
 * the lease is lost in between, the batch is refused when it is settled.
 */
export function nextCall(sql: Dialect, names: OutboxNames, run: Run): Outbox<unknown>['next'] {
  const texts = {
    lane: laneStatement(sql, names),
    quarantine: quarantineStatement(sql, names),
    probe: probeStatement(sql, names),
    retries: retriesStatement(sql, names),
    fresh: freshStatement(names),
  }
  async function suspectBatch(lease: LaneLease): Promise<Batch | undefined> {
    const rows = await run<MessageRow>(texts.probe, leaseValues(lease))
    const messages = rows.map(messageOf)
    return rows.length === 0 ? undefined : { messages, behind: [], through: undefined, more: true }
  }
  async function bulkBatch({ lane }: LaneLease, limit: number): Promise<Batch> {
    // Half for those that failed before, so that many of them do not keep new ones waiting.
    const retries = await run<MessageRow>(texts.retries, [lane, Math.ceil(limit / 2)])
    const freshMax = limit - retries.length
    const fresh = await run<FreshRow>(texts.fresh, [lane, freshMax])
    const last = fresh.at(-1)
    return {
      messages: [...retries, ...fresh.filter(row => !row.blocked)].map(messageOf),
      behind: fresh.filter(row => row.blocked).map(row => String(row.id)),
      through: last && `${last.xid}/${last.id}`,
      more: fresh.length === freshMax || retries.length === Math.ceil(limit / 2),
    }
  }
  return async (lease, { limit }) => {
    const [lane] = await run<LaneRow>(texts.lane, leaseValues(lease))
    if (lane === undefined) return 'lease-lost'
    const quarantined = Number(lane.crashes) >= crashesUntilSuspect
    if (quarantined) await run(texts.quarantine, [...leaseValues(lease), limit])
    const suspect = quarantined || lane.suspects ? await suspectBatch(lease) : undefined
    return suspect ?? bulkBatch(lease, limit)
  }
}

function laneStatement(sql: Dialect, names: OutboxNames): string {
  return `select l.crashes, exists (
      select from ${names.parked} p where p.lane = l.lane and p.suspect and ${isDeliverable(sql, names)}) as suspects
    from ${names.lanes} l where ${isMine}`
}

/** Atomic: what was in the hands of relays that died is set aside in the statement that moves the cursor past it. */
function quarantineStatement(sql: Dialect, names: OutboxNames): string {
  return `with batch as materialized (
      select o.id, o.xid, o.lane, o.aggregate from ${names.lanes} l cross join lateral (
        select o.id, o.xid, o.lane, o.aggregate from ${names.outbox} o
        where o.lane = l.lane and ${isAfterCursor('o')} and ${isBelowHorizon('o')}
        order by o.xid, o.id limit $4::integer) o
      where ${isMine}
    ), moved as (
      update ${names.lanes} l set crashes = 0,
        cursor_xid = coalesce((select b.xid from batch b order by b.xid desc, b.id desc limit 1), l.cursor_xid),
        cursor_id = coalesce((select b.id from batch b order by b.xid desc, b.id desc limit 1), l.cursor_id)
      where ${isMine} returning l.lane
    )
    insert into ${names.parked} (id, xid, lane, aggregate, blocks, suspect, due_at)
    select b.id, b.xid, b.lane, b.aggregate, b.aggregate is not null, true, ${sql.now} from batch b, moved
    on conflict (id) do nothing`
}

/** Counted before it is tried: if the relay dies of it, nobody else could. One at a time, the earliest first. */
function probeStatement(sql: Dialect, names: OutboxNames): string {
  return `with lease as materialized (
      update ${names.lanes} l set probing = true where ${isMine} returning l.lane
    ), chosen as materialized (
      select p.id, p.attempts, p.crashes from ${names.parked} p, lease
      where p.lane = lease.lane and p.suspect and ${isDeliverable(sql, names)} order by p.xid, p.id limit 1
    ), counted as (
      update ${names.parked} p set crashes = p.crashes + 1,
        due_at = ${sql.now} + least(power(2, p.crashes) * 1000, ${probeDelayMaxMs}) * interval '1 millisecond'
      from chosen c where p.id = c.id
    )
    select ${messageColumns}, c.attempts, c.crashes from chosen c join ${names.outbox} o on o.id = c.id`
}

function retriesStatement(sql: Dialect, names: OutboxNames): string {
  return `select ${messageColumns}, p.attempts, p.crashes from ${names.parked} p join ${names.outbox} o on o.id = p.id
    where p.lane = $1::smallint and not p.suspect and ${isDeliverable(sql, names)}
    order by p.xid, p.id limit $2::integer`
}

/** A blocked message is only named: its payload would be read for nothing. */
function freshStatement(names: OutboxNames): string {
  return `select ${messageColumns.replace('o.payload', `case when o.blocked then '' else o.payload end as payload`)},
      o.xid::text as xid, o.blocked, 0 as attempts, 0 as crashes
    from ${names.lanes} l cross join lateral (
      select o.*, exists (select from ${names.parked} q
        where q.lane = o.lane and q.aggregate = o.aggregate and q.blocks) as blocked
      from ${names.outbox} o where o.lane = l.lane and ${isAfterCursor('o')} and ${isBelowHorizon('o')}
      order by o.xid, o.id limit $2::integer) o
    where l.lane = $1::smallint order by o.xid, o.id`
}
