/** How rows are shown, and the filters of lists. */
import type { Scope } from 'latchkey'
import type { AdminRow, WorkFilter } from 'latchkey/admin'
import type { Column } from '../output/table.ts'
import type { OptionSpec } from '../program/command.ts'
import type { Context } from '../program/context.ts'
import { durationText } from '../program/duration.ts'
import { usage } from '../program/exit.ts'
import type { Flags } from '../program/flags.ts'
import type { Desk } from './desk.ts'
import { type Listed, pagesOf } from './pages.ts'

export const filterOptions: readonly OptionSpec[] = [
  { flags: '--operation <name>', summary: 'only rows of this operation' },
  { flags: '--scope <scope>', summary: 'only rows of this tenant; a scope of several parts as a JSON array' },
  { flags: '--cause <code>', summary: 'only rows with this cause' },
  { flags: '--owner <name>', summary: 'only rows that this person has taken' },
  { flags: '--older-than <duration>', summary: 'only rows that wait for longer than this' },
]

export const limitOption: OptionSpec = { flags: '--limit <count>', summary: 'at most so many (default: 100)' }

export function filterOf(flags: Flags, kind: WorkFilter['kind']): Omit<WorkFilter, 'limit' | 'after'> {
  const scope = flags.text('scope')
  const given = {
    operation: flags.text('operation'),
    scope: scope === undefined ? undefined : scopeOf(scope),
    cause: flags.text('cause'),
    owner: flags.text('owner'),
    olderThanMs: flags.durationMs('older-than'),
  }
  const chosen = Object.entries(given).filter(([, value]) => value !== undefined)
  // The same names, without those that were not given.
  return { kind, ...(Object.fromEntries(chosen) as Partial<WorkFilter>) }
}

/** `acme`, or `["acme", "eu"]`, as the scope function of the application returns it. */
export function scopeOf(text: string): Scope {
  if (!text.startsWith('[')) return text
  try {
    const parts: unknown = JSON.parse(text)
    if (Array.isArray(parts) && parts.every(part => typeof part === 'string')) return parts
  } catch {
    // Said below.
  }
  throw usage(`--scope must be a text, or a JSON array of texts (got ${text})`)
}

/** Page after page, up to `--limit`. */
export function listRows(desk: Desk, filter: WorkFilter, limit: number | undefined): Promise<Listed<AdminRow>> {
  return pagesOf(page => desk.work({ ...filter, ...page }), limit)
}

export function rowLine({ id, operation, scope, state, effect, description }: AdminRow): string {
  const about = effect === undefined || effect === null ? operation : `${operation} / ${effect}`
  return [id, state, about, scope, description ?? ''].join('  ').trimEnd()
}

export function rowColumns({ when, clock }: Context): readonly Column<AdminRow>[] {
  const inFuture = (ms: number | undefined | null) =>
    ms === undefined || ms === null ? undefined : ms <= 0 ? 'now' : `in ${durationText(ms)}`
  return [
    { title: 'id', text: ({ id }) => id },
    {
      title: 'since',
      // A server says null where its store does not know it.
      text: ({ waitsForMs }) => (typeof waitsForMs === 'number' ? when(clock.nowMs() - waitsForMs) : undefined),
    },
    { title: 'operation', text: ({ operation, effect }) => (effect ? `${operation} / ${effect}` : operation) },
    { title: 'what', text: ({ description }) => description },
    { title: 'scope', text: ({ scope }) => scope },
    { title: 'cause', text: ({ cause }) => cause },
    { title: 'evidence', text: ({ evidence }) => (evidence === 0 ? undefined : evidence) },
    { title: 'look-up', text: ({ nextLookUpInMs }) => inFuture(nextLookUpInMs) },
    {
      title: 'quarantine',
      text: ({ quarantineLeftMs: left }) =>
        left === undefined || left === null ? undefined : left <= 0 ? 'over' : `${durationText(left)} left`,
    },
    { title: 'owner', text: ({ owner }) => owner },
  ]
}
