/** What a request brings: unknown fields of a body are refused, those of a query are ignored. */
import type { WorkKind } from '../../ports/faculties/admin.ts'
import type { WorkFilter } from '../admin.ts'

export type Body = Readonly<Record<string, unknown>>

/** Why a body is not what the route takes. Undefined: it is. */
export function bodyFault(body: unknown, fields: readonly string[]): string | undefined {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return 'the body must be a JSON object'
  const unknown = Object.keys(body).find(name => !fields.includes(name))
  return unknown === undefined
    ? undefined
    : `the body has an unknown field ${unknown}; it may have ${fields.join(', ') || 'none'}`
}

const kinds: readonly string[] = ['unknown', 'parked', 'overdue']

export function kindOf(query: URLSearchParams): WorkKind | undefined {
  const kind = query.get('kind') ?? 'unknown'
  // It is one of the list.
  return kinds.includes(kind) ? (kind as WorkKind) : undefined
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
