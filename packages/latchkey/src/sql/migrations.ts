/** Numbered, forward-only steps of a store's tables. A released step never changes; the next one repairs it. */
import { LatchkeyError } from '../ports/errors.ts'

export interface Migration {
  /** Rising. A number may be missing: steps that were made at the same time got theirs before they met. */
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
  all.forEach(({ name, version }, index) => {
    const before = all[index - 1]?.version ?? 0
    if (version > before) return
    throw new LatchkeyError('invariant', `migration ${name} is number ${version}, which does not follow ${before}`)
  })
  return all.filter(({ version }) => version > applied)
}
