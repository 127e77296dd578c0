/** What takes rows out of the cache, and out of the memory of every process. */
import { sleep } from '../../../ports/clock.ts'
import { LatchkeyError } from '../../../ports/errors.ts'
import { periodMs } from './periods.ts'
import { buryScript, excludeScript, tombstoneMark } from './scripts.ts'
import type { Tier, TierParts } from './tier.ts'

/** Longer than any call to the database that changes a row. */
const tombstoneMs = 10_000
/** Rows of an erased tenant that were still open go when they have ended: nearly all do so within this. */
const excludedMs = 30 * 24 * 3_600_000
/** Two timers may differ by as much. */
const timerMs = 25

/** A cache that is flushed so often is of no use. */
const triesMax = 5

type Withdrawals = Pick<Tier, 'bury' | 'whileBuried' | 'flush' | 'exclude'>

export function withdrawals({ calls, periods, clock, keyOf, scopeKey }: TierParts): Withdrawals {
  const newTombstone = () => tombstoneMark + clock.randomId()
  /** Until no process remembers anything from before. */
  const periodsEnd = () => sleep(clock, periodMs + timerMs)

  /** Whether this tombstone has been there since it was set. */
  async function bury(id: string, tombstone: string, cure?: string): Promise<boolean> {
    return (await calls.insist(buryScript, [keyOf(id), tombstone, String(tombstoneMs)], cure)) === 1
  }

  async function flush(): Promise<void> {
    await periods.raise()
    await periodsEnd()
  }

  return {
    bury: async id => void (await bury(id, newTombstone())),
    async whileBuried(id, change) {
      const tombstone = newTombstone()
      await bury(id, tombstone)
      await periodsEnd()
      // A cache may lose it: flushed, restarted, short of memory. Then a process may have met the row since.
      for (let tries = 1; !(await bury(id, tombstone)); tries += 1) {
        if (tries === triesMax) throw unstable()
        await periodsEnd()
      }
      const changed = await change()
      if (!(await bury(id, tombstone, 'The row was changed: call it again when the cache answers'))) await periodsEnd()
      return changed
    },
    flush,
    async exclude(scope) {
      await calls.insist(excludeScript, [scopeKey(scope), String(excludedMs)])
      // What was read before that has the older epoch.
      await flush()
    },
  }
}

function unstable(): LatchkeyError {
  return new LatchkeyError(
    'cache-unavailable',
    `the cache of tieredStore lost a mark ${triesMax} times in a row: is it flushed all the time, or short of memory? Nothing was changed in the database`,
  )
}
