/** A store that the program opened itself, with what `migrate` and `doctor` ask of it. */
import type { Store } from 'latchkey'
import type { Check } from '../doctor/finding.ts'
import { usage } from '../program/exit.ts'

export interface OpenedStore {
  readonly kind: 'postgres' | 'sqlite' | 'redis'
  /** For people: the address without its password. */
  readonly address: string
  readonly store: Store
  /** Absent: the store has no tables. */
  readonly tables?: StoreTables
  /** In the order in which they are shown. */
  readonly checks: readonly Check[]
  close(): Promise<void>
}

export interface StoreTables {
  readonly steps: readonly KnownStep[]
  /** Empty: there are no tables yet. */
  applied(): Promise<readonly AppliedStep[]>
  migrate(options: { readonly to?: number }): Promise<void>
}

export interface KnownStep {
  readonly version: number
  readonly name: string
  readonly sql: string
}

export interface AppliedStep {
  readonly version: number
  readonly name: string
  readonly appliedAtMs: number
}

export function tablesOf({ tables, kind }: OpenedStore): StoreTables {
  if (tables !== undefined) return tables
  throw usage(`${kind} has no tables: there is nothing to migrate`)
}
