/** What a relay delivers next. */
import type { Batch, LaneLease, Message } from '../../../ports/outbox.ts'
import { bulkBatch, probeDelayMs, retriesMax, suspectBatch } from '../../shared/outbox/batch.ts'
import { crashesUntilSuspect, headersFrom } from '../../shared/outbox/message.ts'
import type { Database } from '../connection/database.ts'
import type { SqliteRow } from '../driver.ts'
import type { Handle } from '../connection/handle.ts'
import { readNowMs } from '../keys/row.ts'
import { isDeliverableSql, isMineSql, leaseValues } from './lanes.ts'

/** The columns of a message, from the row `o`. */
export const messageColumns = 'o.id, o.lane, o.topic, o.aggregate, o.dedup_id, o.payload, o.headers, o.created_at_ms'

export function messageFrom(row: SqliteRow): Message {
  return {
    position: String(row.id),
    lane: Number(row.lane),
    topic: String(row.topic),
    aggregate: row.aggregate === null ? undefined : String(row.aggregate),
    dedupId: String(row.dedup_id),
    // The column is a BLOB of a STRICT table, NOT NULL.
    payload: row.payload as Uint8Array,
    headers: headersFrom(row.headers),
    createdAtMs: Number(row.created_at_ms),
    attempts: Number(row.attempts),
    crashes: Number(row.crashes),
  }
}

const laneSql = `
  SELECT l.cursor, l.crashes, EXISTS (
    SELECT 1 FROM latchkey_outbox_parked AS p WHERE p.lane = l.lane AND p.suspect AND ${isDeliverableSql}) AS suspects
  FROM latchkey_outbox_lanes AS l WHERE ${isMineSql}`

/** A usual batch is read without the write lock, in one snapshot; suspects are counted before they are handed out. */
export async function nextBatch(database: Database, lease: LaneLease, limit: number): Promise<Batch | 'lease-lost'> {
  const usual = await database.snapshot(handle => {
    const [lane] = handle.rows(laneSql, leaseValues(lease))
    if (lane === undefined) return 'lease-lost'
    if (Number(lane.crashes) >= crashesUntilSuspect || lane.suspects === 1) return 'suspects'
    return freshAndRetries(handle, lease, limit)
  })
  return usual === 'suspects' ? database.write(handle => nextSuspect(handle, lease, limit)) : usual
}

function nextSuspect(handle: Handle, lease: LaneLease, limit: number): Batch | 'lease-lost' {
  const [lane] = handle.rows(laneSql, leaseValues(lease))
  if (lane === undefined) return 'lease-lost'
  if (Number(lane.crashes) >= crashesUntilSuspect) quarantine(handle, lease, limit)
  const message = probe(handle, lease)
  if (message === undefined) return freshAndRetries(handle, lease, limit)
  return suspectBatch(message)
}

const quarantineSql = `
  INSERT INTO latchkey_outbox_parked (id, lane, aggregate, blocks, suspect, due_at_ms)
  SELECT o.id, o.lane, o.aggregate, o.aggregate IS NOT NULL, 1, ?3 FROM latchkey_outbox AS o
  WHERE o.lane = ?1 AND o.id > (SELECT cursor FROM latchkey_outbox_lanes WHERE lane = ?1)
  ORDER BY o.id LIMIT ?2
  RETURNING id`
const passSql = `UPDATE latchkey_outbox_lanes SET crashes = 0, cursor = MAX(cursor, ?2) WHERE lane = ?1`

/** What was in the hands of relays that died is set aside in the transaction that moves the cursor past it. */
function quarantine(handle: Handle, { lane }: LaneLease, limit: number): void {
  const moved = handle.rows(quarantineSql, [lane, limit, readNowMs(handle)])
  handle.rows(passSql, [lane, Math.max(0, ...moved.map(row => Number(row.id)))])
}

const chooseSql = `
  SELECT ${messageColumns}, p.attempts, p.crashes
  FROM latchkey_outbox_parked AS p JOIN latchkey_outbox AS o ON o.id = p.id
  WHERE p.lane = ?1 AND p.suspect AND ${isDeliverableSql} ORDER BY p.id LIMIT 1`
const countSql = 'UPDATE latchkey_outbox_parked SET crashes = crashes + 1, due_at_ms = ?2 WHERE id = ?1'
const probingSql = 'UPDATE latchkey_outbox_lanes SET probing = 1 WHERE lane = ?1'

/** Counted before it is tried: if the relay dies of it, no other process could. One at a time, the earliest first. */
function probe(handle: Handle, { lane }: LaneLease): Message | undefined {
  const [row] = handle.rows(chooseSql, [lane])
  if (row === undefined) return undefined
  const message = messageFrom(row)
  handle.rows(countSql, [Number(row.id), readNowMs(handle) + probeDelayMs(message.crashes)])
  handle.rows(probingSql, [lane])
  return message
}

const retriesSql = `
  SELECT ${messageColumns}, p.attempts, p.crashes
  FROM latchkey_outbox_parked AS p JOIN latchkey_outbox AS o ON o.id = p.id
  WHERE p.lane = ?1 AND NOT p.suspect AND ${isDeliverableSql} ORDER BY p.id LIMIT ?2`

// A blocked message is only named: its payload would be read for nothing.
const freshSql = `
  SELECT ${messageColumns.replace('o.payload', `CASE WHEN o.blocked THEN x'' ELSE o.payload END AS payload`)},
    o.blocked, 0 AS attempts, 0 AS crashes
  FROM (
    SELECT o.*, EXISTS (SELECT 1 FROM latchkey_outbox_parked AS q
      WHERE q.lane = o.lane AND q.aggregate = o.aggregate AND q.blocks) AS blocked
    FROM latchkey_outbox AS o
    WHERE o.lane = ?1 AND o.id > (SELECT cursor FROM latchkey_outbox_lanes WHERE lane = ?1)
    ORDER BY o.id LIMIT ?2) AS o
  ORDER BY o.id`

function freshAndRetries(handle: Handle, { lane }: LaneLease, limit: number): Batch {
  const retries = handle.rows(retriesSql, [lane, retriesMax(limit)]).map(messageFrom)
  const fresh = handle.rows(freshSql, [lane, limit - retries.length])
  return bulkBatch({
    limit,
    retries,
    fresh: fresh.map(row => ({ message: messageFrom(row), blocked: row.blocked === 1 })),
  })
}
