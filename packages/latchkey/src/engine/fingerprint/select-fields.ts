/** Which fields of a JSON body count: `include`, `includeIfPresent` and `exclude`. */
import { excludeFields, fieldTree, type FieldTree, includeFields, pathsIn } from './field-paths.ts'

export interface FieldOptions {
  readonly include?: readonly string[]
  readonly includeIfPresent?: readonly string[]
  readonly exclude?: readonly string[]
}

/** Called for each path in `include` that leads to nothing in a body. */
export type OnMissing = (path: string) => void

/**
 * Where a path of `include` leads to nothing, the whole body counts: the path may be misspelt, and then bodies that differ in what
 * it was meant to name would be equal.
 */
export function selectFields(value: unknown, options: FieldOptions, onMissing: OnMissing = ignore): unknown {
  const { include, includeIfPresent, exclude } = options
  const included = include === undefined ? value : includedOf(value, { include, includeIfPresent }, onMissing)
  return exclude === undefined ? included : excludeFields(included, treeOf(exclude))
}

function ignore(): void {}

interface Include {
  readonly include: readonly string[]
  readonly includeIfPresent: readonly string[] | undefined
}

function includedOf(value: unknown, { include, includeIfPresent }: Include, onMissing: OnMissing): unknown {
  const tree = treeOf(include)
  const included = includeFields(value, tree)
  const missing = pathsIn(tree).filter(path => !included.found.has(path))
  for (const path of missing) onMissing(path)
  if (missing.length > 0) return value
  return includeIfPresent === undefined
    ? included.value
    : includeFields(value, fieldTree([...include, ...includeIfPresent])).value
}

/** Keyed by the list itself, which belongs to an operation and lives as long as it does. */
const trees = new WeakMap<readonly string[], FieldTree>()

function treeOf(paths: readonly string[]): FieldTree {
  const known = trees.get(paths)
  if (known !== undefined) return known
  const made = fieldTree(paths)
  trees.set(paths, made)
  return made
}
