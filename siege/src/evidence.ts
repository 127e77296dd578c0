/** What a run recorded, for the checker. */
import type { EnemyName } from './enemies/names.ts'
import type { Run } from './app/runs.ts'

export interface Evidence {
  readonly innocents: Innocents
  readonly enemies: Readonly<Partial<Record<EnemyName, Attacks>>>
  /** Every run of a handler, by identity. */
  readonly runs: ReadonlyMap<string, readonly Run[]>
  readonly app: {
    /** How each process exited that was not told to. */
    readonly deaths: readonly string[]
    readonly peakMb: number
    readonly peakMbMax: number
  }
  /** Undefined: there is none. */
  readonly cache: Cache | undefined
  readonly rows: Rows
}

/** In front of the keys. */
export interface Cache {
  /** Requests that it answered. */
  readonly hits: number
  /** What was done to it, and how often. */
  readonly faults: Readonly<Record<string, number>>
}

export interface Innocents {
  readonly requests: number
  /** Identities for which a client got a success. */
  readonly acknowledged: readonly string[]
  /** What was refused, failed or answered wrongly, and how often. */
  readonly losses: Readonly<Record<string, number>>
}

export interface Attacks {
  readonly attacks: number
  /** The attacks that completed. The others were cut short, and prove little. */
  readonly whole: number
  /** Answers by status, or by the error that occurred instead. */
  readonly heard: Readonly<Record<string, number>>
  /** Answers that belonged to another tenant. */
  readonly untrue: readonly string[]
}

/** Of the table of keys, at the end, without the rows that an enemy wrote. */
export interface Rows {
  readonly unknown: number
  /** Owned or waiting, after all work had time to finish. */
  readonly unfinished: number
}
