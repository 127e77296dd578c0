/** What a relay delivers next. */
import type { Batch, LaneLease, Message } from '../../../ports/outbox.ts'
import { bulkBatch, probeDelayMs, retriesMax, suspectBatch } from '../../shared/outbox/batch.ts'
import { crashesUntilSuspect } from '../../shared/outbox/message.ts'
import type { Tables } from '../tables.ts'
import { type Aside, deliverable, type Lane, leasedLane, type StoredMessage } from './lanes.ts'

export function toMessage(message: StoredMessage, { attempts, crashes }: Pick<Aside, 'attempts' | 'crashes'>): Message {
  const { position, payload, headers } = message
  return {
    ...message,
    position: String(position),
    payload: new Uint8Array(payload),
    headers: { ...headers },
    attempts,
    crashes,
  }
}

export function nextBatch(tables: Tables, lease: LaneLease, limit: number): Batch | 'lease-lost' {
  const lane = leasedLane(tables, lease)
  if (lane === undefined) return 'lease-lost'
  const nowMs = tables.now()
  if (lane.crashes >= crashesUntilSuspect) quarantine(lane, limit, nowMs)
  const due = deliverable(lane, nowMs)
  const suspect = due.find(one => one.suspect)
  if (suspect !== undefined) return suspectBatch(probe(lane, suspect, nowMs))
  const retries = due.slice(0, retriesMax(limit)).map(one => toMessage(one.message, one))
  const blocked = new Set([...lane.aside.values()].filter(one => one.blocks).map(one => one.message.aggregate))
  const fresh = lane.fresh.slice(0, limit - retries.length)
  return bulkBatch({
    limit,
    retries,
    fresh: fresh.map(message => ({
      message: toMessage(message, { attempts: 0, crashes: 0 }),
      blocked: message.aggregate !== undefined && blocked.has(message.aggregate),
    })),
  })
}

/** What was in the hands of relays that died is set aside, and the cursor moves past it. */
function quarantine(lane: Lane, limit: number, nowMs: number): void {
  for (const message of lane.fresh.splice(0, limit)) {
    const suspect = { suspect: true, blocks: message.aggregate !== undefined, dueAtMs: nowMs }
    lane.aside.set(message.position, { ...newAside(message), ...suspect })
  }
  lane.crashes = 0
}

export function newAside(message: StoredMessage): Aside {
  const untried = { attempts: 0, crashes: 0, dueAtMs: undefined, parkedAtMs: undefined, cause: '', history: [] }
  return { message, blocks: false, suspect: false, ...untried }
}

/** Counted before it is tried: if the relay dies of it, no other process could. */
function probe(lane: Lane, suspect: Aside, nowMs: number): Message {
  const { message, crashes } = suspect
  const dueAtMs = nowMs + probeDelayMs(crashes)
  lane.aside.set(message.position, { ...suspect, crashes: crashes + 1, dueAtMs })
  lane.probing = true
  return toMessage(message, suspect)
}
