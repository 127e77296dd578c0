/** Rows that stand still under the reader: known ones are updated in place, new ones wait until they are asked for. */

export interface HeldList<T> {
  readonly shown: readonly T[]
  /** Not shown yet. */
  readonly fresh: number
}

/** `before`: the ids that are shown. Undefined, or none of them left: everything is shown. */
export function holdList<T extends { readonly id: string }>(
  before: ReadonlySet<string> | undefined,
  rows: readonly T[],
): HeldList<T> {
  if (before === undefined) return { shown: rows, fresh: 0 }
  const shown = rows.filter(({ id }) => before.has(id))
  return shown.length === 0 ? { shown: rows, fresh: 0 } : { shown, fresh: rows.length - shown.length }
}
