/** What an address brings: fields of its query that are not known are ignored. */
import type { WorkKind } from '../../ports/faculties/admin.ts'
import type { WorkFilter } from '../admin.ts'
import { workKinds } from '../work.ts'

export function kindOf(query: URLSearchParams): WorkKind | undefined {
  const kind = query.get('kind') ?? 'unknown'
  return workKinds.find(each => each === kind)
}

export function workFilter(query: URLSearchParams, kind: WorkKind): WorkFilter {
  const olderThanMs = numberOf(query, 'older_than')
  const texts = textsOf(query, {
    operation: 'operation',
    scope: 'scope',
    cause: 'cause',
    owner: 'owner',
    after: 'cursor',
  })
  return { kind, ...texts, ...pageOf(query), ...(olderThanMs === undefined ? {} : { olderThanMs }) }
}

export function textsOf<Name extends string>(
  query: URLSearchParams,
  names: Readonly<Record<Name, string>>,
): { readonly [N in Name]?: string } {
  const given = Object.entries<string>(names).flatMap(([name, field]) => {
    const value = query.get(field)
    return value === null || value === '' ? [] : [[name, value] as const]
  })
  // The names are those of `names`.
  return Object.fromEntries(given) as { readonly [N in Name]?: string }
}

export function pageOf(query: URLSearchParams): { readonly limit?: number } {
  const limit = numberOf(query, 'limit')
  return limit === undefined ? {} : { limit }
}

export function numberOf(query: URLSearchParams, name: string): number | undefined {
  const value = query.get(name)
  return value !== null && /^\d{1,15}$/.test(value) ? Number(value) : undefined
}
