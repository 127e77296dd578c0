/** Numbered, forward-only steps of a store's tables. A released step never changes; the next one repairs it. */
import { LatchkeyError } from '../ports/errors.ts'

export interface Migration {
  /** 1, 2, 3 … without a gap. */
  readonly version: number
  readonly name: string
  /** One or more statements, to be run in one transaction; records its own version at the end. */
  readonly sql: string
}

/**
 * What is still to run, in order. A database that is ahead of this process needs nothing: steps only add, so that the
 * processes of a rolling deployment can share one database.
 */
export function migrationsAfter(all: readonly Migration[], applied: number): readonly Migration[] {
  all.forEach((migration, index) => {
    if (migration.version === index + 1) return
    throw new LatchkeyError('invariant', `migration ${migration.name} is number ${migration.version}, not ${index + 1}`)
  })
  return all.slice(applied)
}
