/** A row from the memory of this process, or from the server. */
import type { ReadableRecord } from '../../../ports/store.ts'
import type { Reply } from '../../shared/redis/driver.ts'
import { decodeEntry } from './entry.ts'
import type { Period } from './periods.ts'
import { lookUpScript, ticketMark, tombstoneMark } from './scripts.ts'
import type { Found, Tier, TierParts } from './tier.ts'

/** Longer than a healthy database needs to answer; then another reader gets its turn. */
const ticketMs = 500
const tombstoneByte = tombstoneMark.charCodeAt(0)

export function lookUps({ calls, periods, clock, counts, keyOf }: TierParts): Pick<Tier, 'local' | 'lookUp'> {
  function miss(found: Omit<Extract<Found, { kind: 'miss' }>, 'kind'>): Found {
    counts.misses += 1
    return { kind: 'miss', ...found }
  }

  function local(id: string): ReadableRecord | undefined {
    const kept = periods.now?.get(id)
    if (kept === undefined) return undefined
    // A copy: who gets it may change it.
    const record = decodeEntry(id, Buffer.from(kept.bytes), kept.leftMs - (clock.monotonicMs() - kept.atMs))
    if (record === undefined) return undefined
    counts.hits += 1
    counts.localHits += 1
    return record
  }

  async function ask(id: string, period: Period): Promise<Found> {
    const { epoch } = period
    const takenAtMs = clock.monotonicMs()
    const token = ticketMark + clock.randomId()
    const reply = await calls.ask(lookUpScript, [keyOf(id), token, String(ticketMs), epoch])
    if (reply === null) return miss({ ticket: { id, token, epoch, takenAtMs }, isSure: true })
    const [bytes, leftMs] = valueOf(reply)
    if (bytes === undefined || bytes[0] === tombstoneByte) return miss({ isSure: false })
    const record = decodeEntry(id, bytes, leftMs)
    // The ticket of another reader, or what this version does not know.
    if (record === undefined) return miss({ isSure: true })
    if (record.state === 'completed') period.keep(id, { bytes: Buffer.from(bytes), leftMs, atMs: takenAtMs })
    counts.hits += 1
    return { kind: 'hit', record }
  }

  return {
    local,
    async lookUp(id) {
      const record = local(id)
      if (record !== undefined) return { kind: 'hit', record }
      const period = await periods.current()
      return period === undefined ? miss({ isSure: false }) : ask(id, period)
    },
  }
}

/** Undefined: the cache did not answer. */
function valueOf(reply: Reply | undefined): readonly [Buffer | undefined, number] {
  const [bytes, leftMs] = Array.isArray(reply) ? (reply as readonly Reply[]) : []
  return [Buffer.isBuffer(bytes) ? bytes : undefined, Number(leftMs)]
}
