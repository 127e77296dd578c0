/** The cache in front of a store, assembled. */
import { createHash } from 'node:crypto'
import type { Clock } from '../../../ports/clock.ts'
import type { KeyRecord, ReadableRecord } from '../../../ports/store.ts'
import type { Sender } from '../../shared/redis/sender.ts'
import { type CacheCalls, cacheCalls } from './calls.ts'
import { offerTo } from './fill.ts'
import { lookUps } from './look-up.ts'
import { openPeriods, type Periods } from './periods.ts'
import { withdrawals } from './withdraw.ts'

/** The right to store what is read from the database from now on. */
export interface Ticket {
  readonly id: string
  readonly token: string
  readonly epoch: string
  /** Monotonic, from before it was there. */
  readonly takenAtMs: number
}

export type Found =
  | { readonly kind: 'hit'; readonly record: ReadableRecord }
  /** `isSure`: the cache answered, and nobody takes this row out of it. */
  | { readonly kind: 'miss'; readonly ticket?: Ticket | undefined; readonly isSure: boolean }

export interface CacheFigures {
  /** Requests that the database was not asked for. */
  readonly hits: number
  /** Of those, how many from the memory of this process. */
  readonly localHits: number
  readonly misses: number
  /** Rows that this process has put into the cache. */
  readonly fills: number
  /** Calls that the cache did not answer in time. */
  readonly failures: number
}

export interface Tier {
  readonly figures: CacheFigures
  /** Whether answers of the operation go through the cache. */
  covers(operation: string): boolean
  /** From the memory of this process. */
  local(id: string): ReadableRecord | undefined
  lookUp(id: string): Promise<Found>
  /** Puts it in, if it may be stored and the ticket is still there. Nobody waits for it. */
  offer(ticket: Ticket | undefined, record: KeyRecord): void
  /** Nothing of this row is stored for a while. Rejects if the cache did not confirm it. */
  bury(id: string): Promise<void>
  /** Changes a row while no process has it: neither from the cache nor in its memory. */
  whileBuried<T>(id: string, change: () => Promise<T>): Promise<T>
  /** From its end on, nothing is used that was stored before. */
  flush(): Promise<void>
  /** From its end on, nothing of the scope is used, and nothing of it is stored for a long time. */
  exclude(scope: string): Promise<void>
}

export interface TierOptions {
  readonly sender: Sender
  covers(operation: string): boolean
  readonly prefix: string
  /** Zero: held rows are not stored. */
  readonly heldMs: number
  readonly clock: Clock
}

/** What the parts of a tier share. */
export interface TierParts extends Pick<TierOptions, 'covers' | 'heldMs' | 'clock'> {
  readonly calls: CacheCalls
  readonly periods: Periods
  readonly counts: { -readonly [Name in Exclude<keyof CacheFigures, 'failures'>]: number }
  keyOf(id: string): string
  scopeKey(scope: string): string
}

export function openTier({ sender, prefix, ...options }: TierOptions): Tier {
  const { clock, covers } = options
  const calls = cacheCalls(sender, clock)
  const counts = { hits: 0, localHits: 0, misses: 0, fills: 0 }
  const parts: TierParts = {
    ...options,
    calls,
    periods: openPeriods(calls, `${prefix}:epoch`, clock),
    counts,
    keyOf: id => `${prefix}:${id}`,
    scopeKey: scope => `${prefix}:without:${createHash('sha256').update(scope).digest('base64url')}`,
  }
  return {
    get figures() {
      return { ...counts, failures: calls.failures }
    },
    covers,
    ...lookUps(parts),
    offer: offerTo(parts),
    ...withdrawals(parts),
  }
}
