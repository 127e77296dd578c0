/** The queue of rows that are out of the ordinary, as one person sees it. */
import type { AdminRecords, Groups, WorkGroup, WorkKind, WorkRow, WorkSum } from '../ports/faculties/admin.ts'
import { scopeText } from '../engine/request.ts'
import type { Asker, WorkFilter } from './admin.ts'
import { type AdminContext, notViewable, quarantines, scopesOf, sees } from './context.ts'
import { beyondCore, coreListing } from './core.ts'
import type { AdminRow, Page, Read } from './results.ts'
import { currentView, rowView } from './view.ts'

/** Of a caller without types as well. */
export const workKinds: readonly WorkKind[] = ['unknown', 'parked', 'overdue']
const pageDefault = 50
const pageMax = 100
/** Pages that are read to fill one for a person who sees some scopes only: then it says that there is more. */
const pagesMax = 5

export function pageSize(limit: number = pageDefault): number {
  return Math.max(1, Math.min(Number.isInteger(limit) ? limit : pageDefault, pageMax))
}

interface WorkWanted extends WorkFilter {
  readonly admin: AdminRecords
}

export async function work(
  context: AdminContext,
  by: Asker,
  { admin, limit, scope, ...filter }: WorkWanted,
): Promise<Page<AdminRow>> {
  const size = pageSize(limit)
  const quarantineOf = await quarantines(context)
  const ofScope = scopeAsked(by, scope)
  const items: AdminRow[] = []
  let { after } = filter
  for (let pages = 0; pages < pagesMax; pages += 1) {
    // No more than there is room for: a row that was read and not shown would be on no page, because the next one begins behind it.
    const page = await admin.work({ ...filter, ...ofScope, after, limit: size - items.length })
    items.push(...page.rows.filter(({ record }) => sees(by, record.scope)).map(row => viewOf(row, quarantineOf)))
    if (page.next === undefined || page.partial) return { items, next: undefined, partial: page.partial }
    after = page.next
    if (items.length === size) return { items, next: after, partial: false }
  }
  return { items, next: after, partial: true }
}

/** Who sees one scope only asks for it, so that the store reads no other. */
function scopeAsked(by: Asker, scope: WorkFilter['scope']): { readonly scope?: string } {
  if (scope !== undefined) return { scope: scopeText(scope) }
  const [only, ...others] = scopesOf(by) ?? []
  return only === undefined || others.length > 0 ? {} : { scope: only }
}

/** In no order of age: the core does not know it. */
export async function coreWork(context: AdminContext, by: Asker, filter: WorkFilter): Promise<Read<Page<AdminRow>>> {
  const { store, call } = context
  const refused = notViewable(by)
  if (refused !== undefined) return refused
  const why = beyondCore(store, filter)
  if (why !== undefined) return { kind: 'not-supported', why }
  const { records, next } = await call(() => store.list(coreListing(filter, pageSize(filter.limit))))
  const quarantineOf = await quarantines(context)
  const seen = records.filter(({ scope }) => sees(by, scope))
  const rows = await Promise.all(seen.map(({ id }) => currentView(context, id, quarantineOf)))
  return { kind: 'found', value: { items: rows.filter(row => row !== undefined), next, partial: false } }
}

function viewOf(row: WorkRow, quarantineOf: (operation: string) => number): AdminRow {
  return rowView({ ...row, quarantineMs: quarantineOf(row.record.operation) })
}

interface GroupsWanted {
  readonly admin: AdminRecords
  readonly kind: WorkKind
}

/** What a person does not see is not counted for them either: theirs is the count of a page, and says whether there is more. */
export async function groups(context: AdminContext, by: Asker, { admin, kind }: GroupsWanted): Promise<Groups> {
  if (scopesOf(by) === undefined) return admin.groups(kind)
  const { items, next, partial } = await work(context, by, { kind, limit: pageMax, admin })
  const found = new Map<string, WorkGroup>()
  for (const { operation, cause, waitsForMs = 0 } of items) {
    const name = JSON.stringify([operation, cause])
    const { count = 0, oldestMs = 0 } = found.get(name) ?? {}
    found.set(name, { operation, cause, count: count + 1, oldestMs: Math.max(oldestMs, waitsForMs) })
  }
  const largest = [...found.values()].toSorted((left, right) => right.count - left.count)
  return { groups: largest, partial: partial || next !== undefined }
}

/** The same, added up. */
export async function sum(context: AdminContext, by: Asker, { admin, kind }: GroupsWanted): Promise<WorkSum> {
  if (scopesOf(by) === undefined) return admin.sum(kind)
  const { groups: seen, partial } = await groups(context, by, { admin, kind })
  const count = seen.reduce((total, group) => total + group.count, 0)
  return { count, oldestMs: Math.max(0, ...seen.map(({ oldestMs }) => oldestMs)), partial }
}
