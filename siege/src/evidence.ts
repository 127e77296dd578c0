/** What a run has seen, for the checker. */
import type { EnemyName } from './enemies/names.ts'

export interface Evidence {
  readonly innocents: Innocents
  readonly enemies: Readonly<Partial<Record<EnemyName, Attacks>>>
  /** How often the handler ran, by identity. */
  readonly runs: ReadonlyMap<string, number>
  readonly app: {
    /** How each process that ended before it was told to came to its end. */
    readonly deaths: readonly string[]
    readonly peakMb: number
    readonly peakMbMax: number
  }
  readonly rows: Rows
}

export interface Innocents {
  readonly requests: number
  /** Identities whose success a client was told. */
  readonly acknowledged: readonly string[]
  /** What was refused, failed or answered wrongly, and how often. */
  readonly losses: Readonly<Record<string, number>>
}

export interface Attacks {
  readonly attacks: number
  /** Those that came to their own end. The others were cut short, and have shown little. */
  readonly whole: number
  /** Answers by status, or by what was heard instead. */
  readonly heard: Readonly<Record<string, number>>
  /** Answers that belonged to somebody else. */
  readonly untrue: readonly string[]
}

/** Of the table of keys, at the end, without the rows that an enemy wrote. */
export interface Rows {
  readonly unknown: number
  /** Owned or waiting, after everybody had time to finish. */
  readonly unfinished: number
}
