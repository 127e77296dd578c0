/** The names on the way to a field: `customer.email`, or as a JSON pointer `/customer/e-mail.address`. */
export function parseFieldPath(path: string): string[] {
  if (!path.startsWith('/')) return path.split('.')
  return path
    .slice(1)
    .split('/')
    .map(name => name.replaceAll('~1', '/').replaceAll('~0', '~'))
}

/**
 * Keeps the fields that the paths name. Arrays are walked through: `items.sku` keeps it in each item. A path that ends
 * early at something without fields keeps that, so that a body of an unexpected shape still counts.
 */
export function includeFields(value: unknown, paths: readonly string[][]): unknown {
  if (paths.some(path => path.length === 0)) return value
  if (Array.isArray(value)) return value.map((element: unknown) => includeFields(element, paths))
  if (!isRecord(value)) return value
  const kept = Object.keys(value).flatMap(name => {
    const below = pathsBelow(paths, name)
    return below.length === 0 ? [] : [[name, includeFields(value[name], below)] as const]
  })
  // fromEntries defines members, so that one named __proto__ is a member like any other.
  return Object.fromEntries(kept)
}

/** Drops the fields that the paths name, in each element of an array on the way. */
export function excludeFields(value: unknown, paths: readonly string[][]): unknown {
  if (paths.length === 0) return value
  if (Array.isArray(value)) return value.map((element: unknown) => excludeFields(element, paths))
  if (!isRecord(value)) return value
  const kept = Object.keys(value).flatMap(name => {
    const below = pathsBelow(paths, name)
    return below.some(path => path.length === 0) ? [] : [[name, excludeFields(value[name], below)] as const]
  })
  return Object.fromEntries(kept)
}

function pathsBelow(paths: readonly string[][], name: string): string[][] {
  return paths.filter(path => path[0] === name).map(path => path.slice(1))
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
