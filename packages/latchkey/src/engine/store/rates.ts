/** How often what happens, and how long executions take, by operation and minute, for the whole fleet: counted in each process and added to the store's table every ten seconds. */
import type { Clock } from '../../ports/clock.ts'
import type { AdminRecords, Rate } from '../../ports/faculties/admin.ts'
import type { Store } from '../../ports/store.ts'
import { type AddCount, counterOf, type Counts, counting, type Metric, type Telemetry } from '../../ports/telemetry.ts'

/** One statement in ten seconds: little for the store, and soon enough for a person. */
const flushMs = 10_000

/** Beside the buckets of `run/durations.ts`. */
export const counted: ReadonlySet<Metric> = new Set<Metric>([
  'reserve.created',
  'reserve.replay',
  'reserve.in_progress',
  'reserve.key_misuse',
  'reserve.failed_retry',
  'reserve.unknown',
  'store.error',
])

export interface Rates {
  readonly telemetry: Telemetry
  /** One execution ended: `metric` is the bucket of its duration. Undefined: the store has no table for it. */
  readonly countDuration: AddCount | undefined
  /** Adds what was counted, and counts no more. Never rejects: a minute that is not counted is no reason to fail. */
  end(): Promise<void>
}

export function countRates<Tx>(telemetry: Telemetry, { admin }: Pick<Store<Tx>, 'admin'>, clock: Clock): Rates {
  if (admin === undefined) return { telemetry, countDuration: undefined, end: async () => {} }
  const counts: Counts = new Map()
  let cancel: (() => void) | undefined
  let ended = false

  async function flush(): Promise<void> {
    const rates = ratesOf(counts)
    counts.clear()
    if (rates.length > 0) await addRates(admin, rates)
  }

  function flushLater(): void {
    if (!ended) cancel = clock.after(flushMs, () => void flush())
  }

  const add = counterOf(counts, flushLater)
  return {
    telemetry: counting(telemetry, counted, add),
    countDuration: add,
    end() {
      ended = true
      cancel?.()
      return flush()
    },
  }
}

function ratesOf(counts: Counts): readonly Rate[] {
  return [...counts].flatMap(([operation, metrics]) =>
    [...metrics].map(([metric, count]) => ({ operation, metric, count })),
  )
}

async function addRates(admin: AdminRecords | undefined, rates: readonly Rate[]): Promise<void> {
  try {
    await admin?.addRates(rates)
  } catch {
    // The store is away, or the role of this process has no right on the table: what was counted is lost, and nothing else.
  }
}
