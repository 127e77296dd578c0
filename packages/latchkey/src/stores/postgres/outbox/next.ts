/** What a relay delivers next. */
import type { Batch, LaneLease, Message, Outbox } from '../../../ports/outbox.ts'
import { retriesMax, suspectBatch } from '../../shared/outbox/batch.ts'
import { crashesUntilSuspect, headersFrom, probeDelayMaxMs } from '../../shared/outbox/message.ts'
import type { RawNumber } from '../../shared/record-row.ts'
import type { RunStatement } from '../connection/statement.ts'
import { epochMs, milliseconds } from '../sql/fragments.ts'
import type { Dialect, OutboxNames } from '../sql/names.ts'
import { isAfterCursor, isBelowHorizon, isDeliverable, isMine, leaseValues } from './lanes.ts'

/** Of `outbox_next`: the first one. */
type LaneRow = { readonly crashes: RawNumber; readonly suspects: boolean; readonly retries: boolean }

interface ContentRow {
  readonly id: RawNumber
  readonly topic: string
  readonly aggregate: string | null
  readonly dedup_id: string
  readonly payload: Uint8Array
  readonly headers: string
  readonly created_at_ms: RawNumber
}

export interface MessageRow extends ContentRow {
  readonly lane: RawNumber
  readonly attempts: RawNumber
  readonly crashes: RawNumber
}

/** Of `outbox_next`: all but the first one. */
type FreshRow = ContentRow & { readonly xid: string; readonly blocked: boolean }

interface Read {
  readonly lane: LaneRow
  readonly fresh: readonly FreshRow[]
}

/** The columns of `MessageRow` that the row `o` has. */
export const messageColumns: string = `o.id::text as id, o.lane, o.topic, o.aggregate, o.dedup_id, o.payload, o.headers,
      ${epochMs('o.created_at')} as created_at_ms`

export function messageOf(row: MessageRow): Message {
  return messageAt(row, { lane: Number(row.lane), attempts: Number(row.attempts), crashes: Number(row.crashes) })
}

function messageAt(
  row: ContentRow,
  { lane, attempts, crashes }: Pick<Message, 'lane' | 'attempts' | 'crashes'>,
): Message {
  return {
    position: String(row.id),
    lane,
    topic: row.topic,
    aggregate: row.aggregate ?? undefined,
    dedupId: row.dedup_id,
    payload: row.payload,
    headers: headersFrom(row.headers),
    createdAtMs: Math.floor(Number(row.created_at_ms)),
    attempts,
    crashes,
  }
}

/**
 * The statements of one call need no common transaction: only the holder of the lease moves the lane's messages, and if
 * the lease is lost in between, the batch is refused when it is settled.
 */
export function nextCalls(
  sql: Dialect,
  names: OutboxNames,
  run: RunStatement,
): Pick<Outbox<unknown>, 'next' | 'ahead'> {
  const texts = {
    next: `select * from ${sql.functions.outboxNext}($1, $2, $3, $4, $5, $6)`,
    quarantine: quarantineStatement(sql, names),
    probe: probeStatement(sql, names),
    retries: retriesStatement(sql, names),
  }
  async function probeBatch(lease: LaneLease): Promise<Batch | undefined> {
    const [suspect] = await run<MessageRow>(texts.probe, leaseValues(lease))
    return suspect && suspectBatch(messageOf(suspect))
  }
  async function bulkBatch({ lane }: LaneLease, limit: number, read: Read): Promise<Batch> {
    const retries = read.lane.retries ? await run<MessageRow>(texts.retries, [lane, retriesMax(limit)]) : []
    const freshMax = limit - retries.length
    const fresh = read.fresh.slice(0, freshMax)
    const last = fresh.at(-1)
    const messages = retries.map(messageOf)
    for (const row of fresh) if (!row.blocked) messages.push(messageAt(row, { lane, attempts: 0, crashes: 0 }))
    return {
      messages,
      behind: fresh.filter(row => row.blocked).map(row => String(row.id)),
      through: last && `${last.xid}/${last.id}`,
      more: fresh.length === freshMax || retries.length === retriesMax(limit),
    }
  }
  async function readLane(lease: LaneLease, limit: number, after?: string): Promise<Read | undefined> {
    const [xid = null, id = null] = after?.split('/') ?? []
    const [lane, ...fresh] = await run<LaneRow | FreshRow>(texts.next, [...leaseValues(lease), limit, xid, id])
    // The function's first row, and its others.
    return lane && { lane: lane as LaneRow, fresh: fresh as FreshRow[] }
  }
  return {
    async next(lease, { limit }) {
      let read = await readLane(lease, limit)
      if (read !== undefined && Number(read.lane.crashes) >= crashesUntilSuspect) {
        await run(texts.quarantine, [...leaseValues(lease), limit])
        read = await readLane(lease, limit)
      }
      if (read === undefined) return 'lease-lost'
      const suspect = read.lane.suspects ? await probeBatch(lease) : undefined
      return suspect ?? bulkBatch(lease, limit, read)
    },
    /** What is aside may be what is being settled: it is read again then, and so is all that it might block. */
    async ahead(lease, { limit, after }) {
      const read = await readLane(lease, limit, after)
      if (read === undefined || read.lane.suspects || read.lane.retries) return undefined
      return bulkBatch(lease, limit, read)
    },
  }
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

/** Counted before it is tried: if the relay dies of it, nothing else could count it. One at a time, the earliest first. */
function probeStatement(sql: Dialect, names: OutboxNames): string {
  return `with lease as materialized (
      update ${names.lanes} l set probing = true where ${isMine} returning l.lane
    ), chosen as materialized (
      select p.id, p.attempts, p.crashes from ${names.parked} p, lease
      where p.lane = lease.lane and p.suspect and ${isDeliverable(sql, names)} order by p.xid, p.id limit 1
    ), counted as (
      update ${names.parked} p set crashes = p.crashes + 1,
        due_at = ${sql.now} + ${milliseconds(`least(pg_catalog.power(float8 '2', p.crashes::float8) * float8 '1000', ${probeDelayMaxMs})`)}
      from chosen c where p.id = c.id
    )
    select ${messageColumns}, c.attempts, c.crashes from chosen c join ${names.outbox} o on o.id = c.id`
}

function retriesStatement(sql: Dialect, names: OutboxNames): string {
  return `select ${messageColumns}, p.attempts, p.crashes from ${names.parked} p join ${names.outbox} o on o.id = p.id
    where p.lane = $1::smallint and not p.suspect and ${isDeliverable(sql, names)}
    order by p.xid, p.id limit $2::integer`
}
