/** Numbered, forward-only steps of a store's tables. A released step never changes; the next one repairs it. */
import { LatchkeyError } from '../../ports/errors.ts'

export interface Migration {
  /** Rising. A number may be missing: steps that were made at the same time got theirs before they met. */
  readonly version: number
  readonly name: string
  /** One or more statements, to be run in one transaction; records its own version at the end. */
  readonly sql: string
}

/** A step that a database has. */
export interface AppliedStep {
  readonly version: number
  readonly name: string
  /** The step that a process must at least know to share the tables after this one. Absent: the step does not declare one. */
  readonly sharedFrom: number | undefined
}

export interface MigrateOptions {
  /** The last step to apply. Default: the newest. For steps that are applied one by one; a release needs all of its own. */
  readonly to?: number
}

/** What is still to run, in order. */
export function migrationsAfter(
  all: readonly Migration[],
  applied: number,
  { to = Infinity }: MigrateOptions = {},
): readonly Migration[] {
  all.forEach(({ name, version }, index) => {
    const before = all[index - 1]?.version ?? 0
    if (version > before) return
    throw new LatchkeyError('invariant', `migration ${name} is number ${version}, which does not follow ${before}`)
  })
  return all.filter(({ version }) => version > applied && version <= to)
}

export type StepsFault =
  /** Another owner has a table of this name. */
  | { readonly kind: 'foreign'; readonly step: AppliedStep | undefined }
  /** A later release made a step that processes of this one cannot share. */
  | { readonly kind: 'newer'; readonly step: AppliedStep }
  | { readonly kind: 'older'; readonly version: number }

/**
 * What is wrong with the steps that a database has; undefined: nothing. A step of a later release is not wrong by itself: the processes of a
 * rolling deployment share one database, and each step declares how old they may be.
 */
export function stepsFault(known: readonly Migration[], applied: readonly AppliedStep[]): StepsFault | undefined {
  const names = new Map(known.map(({ version, name }) => [version, name]))
  const latest = known.at(-1)?.version ?? 0
  const strange = applied.find(({ version, name }) => version <= latest && names.get(version) !== name)
  if (strange !== undefined || applied.every(({ version }) => version !== known[0]?.version)) {
    return { kind: 'foreign', step: strange ?? applied[0] }
  }
  const tooNew = applied.find(
    ({ version, sharedFrom }) => version > latest && (sharedFrom === undefined || sharedFrom > latest),
  )
  if (tooNew !== undefined) return { kind: 'newer', step: tooNew }
  const version = latestOf(applied)
  return version < latest ? { kind: 'older', version } : undefined
}

/** Zero: none. */
export function latestOf(applied: readonly AppliedStep[]): number {
  return Math.max(0, ...applied.map(({ version }) => version))
}
