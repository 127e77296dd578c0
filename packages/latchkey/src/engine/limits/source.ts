/** One limit, whatever it counts. */
import type { Clock } from '../../ports/clock.ts'
import type { Quotas } from '../../ports/faculties/quotas.ts'
import type { Telemetry } from '../../ports/telemetry.ts'
import type { StoreCalls } from '../store/call.ts'

/** What is counted by the minute. */
export type LimitKind = 'new-keys' | 'lookups' | 'mismatches'

export type LimitName = LimitKind | 'open-keys' | 'stored-bytes'

/** What one limit lets pass. A promise only where the store has to be asked. */
export interface Source {
  readonly limit: LimitName
  /** Whether it may pass. `mayWait`: for an answer of the store. Otherwise what this process knows decides. */
  take(scope: string, mayWait: boolean): boolean | Promise<boolean>
  /** What it was taken for did not happen. */
  giveBack(scope: string): void
  /** When the next one may pass. Zero: now. */
  nextInMs(scope: string): number
}

/** Of limits that ask the store. */
export interface QuotaHost {
  readonly quotas: Quotas
  readonly calls: StoreCalls
  readonly clock: Clock
  readonly telemetry: Telemetry
}
