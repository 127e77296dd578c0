/** Rows on their way into the cache. */
import type { KeyRecord, ReadableRecord } from '../../../ports/store.ts'
import { encodeEntry } from './entry.ts'
import { fillScript, isExcludedScript } from './scripts.ts'
import type { Ticket, Tier, TierParts } from './tier.ts'

/** What the cache cannot know, such as a database that was restored, is over after this. */
const livesMsMax = 600_000
/** Times of rows are rounded to milliseconds, and two clocks do not run at the same rate. */
const marginMs = 1_000
/** Of a larger one, the transfer costs more than the read it saves. */
const entryBytesMax = 262_144

export function offerTo({ calls, clock, counts, covers, heldMs, keyOf, scopeKey }: TierParts): Tier['offer'] {
  async function fill({ id, token, epoch, takenAtMs }: Ticket, record: ReadableRecord): Promise<void> {
    // Undefined where the cache did not answer.
    if ((await calls.ask(isExcludedScript, [scopeKey(record.scope)])) !== null) return
    const elapsedMs = Math.ceil(clock.monotonicMs() - takenAtMs)
    const livesMs = Math.floor(lifeOf(record, elapsedMs, heldMs))
    if (livesMs <= 0) return
    const entry = encodeEntry(record, epoch, { livesMs, elapsedMs })
    if (entry.length > entryBytesMax) return
    const reply = await calls.ask(fillScript, [keyOf(id), token, entry, String(livesMs)])
    if (reply === 1) counts.fills += 1
  }

  return (ticket, record) => {
    if (ticket === undefined || !isStorable(record) || !covers(record.operation)) return
    if (lifeOf(record, 0, heldMs) > 0) void fill(ticket, record)
  }
}

/** What another version wrote, or is expired, gone or parked, is left to the database. */
function isStorable(record: KeyRecord): record is ReadableRecord {
  if (record.expired || record.gone || record.parked) return false
  return record.state === 'in_progress' || (record.state === 'completed' && record.outcome !== undefined)
}

/** Completed, and for a while yet: it may be given to who has asked a little later. */
export function isLasting(record: KeyRecord): boolean {
  return record.state === 'completed' && isStorable(record) && lifeOf(record, 0, 0) > 0
}

/** For how long it may be stored. Zero or less: not at all. */
function lifeOf(record: ReadableRecord, elapsedMs: number, heldMs: number): number {
  if (record.state === 'in_progress') return Math.min(record.leaseLeftMs - elapsedMs, heldMs)
  // By the clock of the database, which has dated all three: no other one counts.
  const leftMs = record.expiresAtMs - (record.createdAtMs + record.ageMs)
  return Math.min(leftMs - elapsedMs - marginMs, livesMsMax)
}
