/** Paths to fields as a tree, so that a body is traversed once, however many paths there are. */
export interface FieldTree {
  /** The path that ends here, as it was written. It covers everything below it. */
  readonly path: string | undefined
  readonly below: ReadonlyMap<string, FieldTree>
}

/** `customer.email`, or as a JSON pointer `/customer/e-mail.address`. */
export function fieldTree(paths: readonly string[]): FieldTree {
  return grow(paths.map(path => ({ path, names: namesOf(path) })))
}

interface Path {
  readonly path: string
  readonly names: readonly string[]
}

function namesOf(path: string): string[] {
  if (!path.startsWith('/')) return path.split('.')
  return path
    .slice(1)
    .split('/')
    .map(name => name.replaceAll('~1', '/').replaceAll('~0', '~'))
}

function grow(paths: readonly Path[]): FieldTree {
  const end = paths.find(({ names }) => names.length === 0)
  if (end !== undefined) return { path: end.path, below: new Map() }
  const byName = new Map<string, Path[]>()
  for (const { path, names } of paths) {
    const [name = '', ...rest] = names
    byName.set(name, [...(byName.get(name) ?? []), { path, names: rest }])
  }
  return { path: undefined, below: new Map([...byName].map(([name, own]) => [name, grow(own)])) }
}

export interface Included {
  readonly value: unknown
  /** The paths that led to a field, or to something without fields. */
  readonly found: ReadonlySet<string>
}

/**
 * Retains the fields that the tree names. A path through an array applies to each element: `items.sku` retains it in each item. A path
 * that ends early at a value without fields retains that value, so that a body of an unexpected shape still counts.
 */
export function includeFields(value: unknown, tree: FieldTree): Included {
  const found = new Set<string>()
  return { value: include(value, tree, found), found }
}

function include(value: unknown, tree: FieldTree, found: Set<string>): unknown {
  if (tree.path !== undefined) {
    found.add(tree.path)
    return value
  }
  if (Array.isArray(value) && value.length > 0) return value.map((element: unknown) => include(element, tree, found))
  if (!isRecord(value) || Array.isArray(value)) {
    addAll(tree, found)
    return value
  }
  const kept: [string, unknown][] = []
  for (const name of Object.keys(value)) {
    const below = tree.below.get(name)
    if (below !== undefined) kept.push([name, include(value[name], below, found)])
  }
  // fromEntries defines properties, so that __proto__ is a member like any other.
  return Object.fromEntries(kept)
}

function addAll({ path, below }: FieldTree, found: Set<string>): void {
  if (path !== undefined) found.add(path)
  for (const tree of below.values()) addAll(tree, found)
}

/** The paths of a tree, without those that another path covers. */
export function pathsIn(tree: FieldTree): string[] {
  const all = new Set<string>()
  addAll(tree, all)
  return [...all]
}

/** Drops the fields that the tree names, in each element of an array along the path. */
export function excludeFields(value: unknown, tree: FieldTree): unknown {
  if (Array.isArray(value)) return value.map((element: unknown) => excludeFields(element, tree))
  if (!isRecord(value)) return value
  const kept: [string, unknown][] = []
  for (const name of Object.keys(value)) {
    const below = tree.below.get(name)
    if (below === undefined) kept.push([name, value[name]])
    else if (below.path === undefined) kept.push([name, excludeFields(value[name], below)])
  }
  return Object.fromEntries(kept)
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
