/**
 * What a process knows without asking the cache, for half a second: the epoch, and the entries that it has met in it. Then it knows nothing again. So
 * whoever has changed the cache and waited that long is known to every process.
 */
import type { Clock } from '../../../ports/clock.ts'
import type { CacheCalls } from './calls.ts'
import { epochScript, raiseScript } from './scripts.ts'

/** A hot key costs each process two look-ups a second; an operator's `forget` waits for it. */
export const periodMs = 500
/** As many hot keys as a process may have in half a second, within 16 MiB. */
const entriesMax = 1_000
const bytesMax = 16 * 1_048_576

export interface LocalEntry {
  readonly bytes: Buffer
  /** What the server had left for it, at `atMs` or later. */
  readonly leftMs: number
  /** Monotonic. */
  readonly atMs: number
}

export interface Period {
  readonly epoch: string
  keep(id: string, entry: LocalEntry): void
  get(id: string): LocalEntry | undefined
}

export interface Periods {
  /** The one that lasts. */
  readonly now: Period | undefined
  /** The one that lasts, or the next one. Undefined: the cache did not answer. */
  current(): Promise<Period | undefined>
  /** From the end of the period on, no process uses an entry from before. */
  raise(): Promise<void>
}

export function openPeriods(calls: CacheCalls, key: string, clock: Clock): Periods {
  let period: (Period & { readonly endsAtMs: number }) | undefined
  let beginning: Promise<Period | undefined> | undefined

  async function begin(): Promise<Period | undefined> {
    // Counted from before the question: the answer may be as old.
    const endsAtMs = clock.monotonicMs() + periodMs
    const reply = await calls.ask(epochScript, [key, clock.randomId()])
    if (!Buffer.isBuffer(reply)) return undefined
    period = { ...emptyPeriod(reply.toString()), endsAtMs }
    return period
  }

  const periods: Periods = {
    get now() {
      return period !== undefined && clock.monotonicMs() < period.endsAtMs ? period : undefined
    },
    async current() {
      const { now } = periods
      if (now !== undefined) return now
      beginning ??= begin().finally(() => (beginning = undefined))
      return beginning
    },
    raise: async () => void (await calls.insist(raiseScript, [key, clock.randomId()])),
  }
  return periods
}

function emptyPeriod(epoch: string): Period {
  const entries = new Map<string, LocalEntry>()
  let total = 0
  return {
    epoch,
    keep(id, entry) {
      if (entries.has(id) || entries.size >= entriesMax || total + entry.bytes.length > bytesMax) return
      total += entry.bytes.length
      entries.set(id, entry)
    },
    get: id => entries.get(id),
  }
}
