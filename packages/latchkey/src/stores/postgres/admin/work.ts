/** The queues of rows that are out of the ordinary. Each comes from its own index; nothing scans the keys. */
import type { AdminRecords, WorkGroup, WorkKind, WorkListing } from '../../../ports/faculties/admin.ts'
import { groupedMax } from '../../shared/admin/limits.ts'
import {
  groupsOf,
  type NotesColumns,
  notesOf,
  sumOf,
  workAfter,
  type WorkColumns,
  workPage,
} from '../../shared/admin/rows.ts'
import type { RawNumber } from '../../shared/record-row.ts'
import type { RunStatement } from '../connection/statement.ts'
import { openEffect } from '../reconcile/settle.ts'
import { readable } from '../sql/columns.ts'
import { epochMs, milliseconds, recordColumns, state } from '../sql/fragments.ts'
import { adminNames, type Dialect } from '../sql/names.ts'
import { overdueIds } from './overdue.ts'
import { type Connections, limited } from './transaction.ts'

type WorkCalls = Pick<AdminRecords, 'notes' | 'work' | 'groups' | 'sum'>

interface GroupRow {
  readonly operation: string
  readonly cause: string | null
  readonly count: RawNumber
  readonly oldest_ms: RawNumber
}

interface SumRow {
  readonly count: RawNumber
  readonly oldest_ms: RawNumber | null
}

export function workCalls(connections: Connections): WorkCalls {
  const { sql, run } = connections
  const overdue = overdueIds(sql)
  const idsOf = async (kind: WorkKind, within: RunStatement) => (kind === 'overdue' ? [await overdue(within)] : [])
  const groups = async (kind: WorkKind) => {
    const rows = await limited(connections, async within =>
      within<GroupRow>(groupsStatement(sql, kind), await idsOf(kind, within)),
    )
    return rows === undefined ? { groups: [], partial: true } : groupsOf(rows.map(groupOf))
  }
  return {
    async notes(id) {
      const [row] = await run<NotesColumns>(notesStatement(sql), [id])
      return row && notesOf(row)
    },
    async work(listing) {
      const rows = await limited(connections, async within =>
        within<WorkColumns>(workStatement(sql, listing), [
          ...workValues(listing),
          ...(await idsOf(listing.kind, within)),
        ]),
      )
      return rows === undefined ? { rows: [], next: undefined, partial: true } : workPage(rows, listing.limit)
    },
    groups,
    async sum(kind) {
      // What the rows are of stands in their keys, one page or more for each: the count does not need it.
      if (kind !== 'unknown') return sumOf(await groups(kind))
      const rows = await limited(connections, within => within<SumRow>(unknownSum(sql), []))
      const { count = 0, oldest_ms } = rows?.[0] ?? {}
      return {
        count: Number(count),
        oldestMs: Math.max(0, Math.floor(Number(oldest_ms ?? 0))),
        partial: rows === undefined || Number(count) > groupedMax,
      }
    },
  }
}

function groupOf({ operation, cause, count, oldest_ms }: GroupRow): WorkGroup {
  return { operation, cause: cause ?? undefined, count: Number(count), oldestMs: Math.floor(Number(oldest_ms)) }
}

/** Where the rows `k` of a kind come from, since when each waits, and why. `ids`: the parameter with the ids of those that are overdue. */
function sourceOf(
  sql: Dialect,
  kind: WorkKind,
  ids: string,
): { readonly from: string; readonly id: string; readonly since: string; readonly cause: string } {
  // Not flattened: one look at the primary key for each entry of the queue, and never a scan to join with, whatever the statistics say.
  const keyOf = (queue: string) =>
    `join lateral (select k.* from ${sql.keys} k where k.id = ${queue}.id offset 0) k on true`
  switch (kind) {
    case 'unknown':
      return {
        from: `${sql.due} u ${keyOf('u')}`,
        id: 'u.id',
        since: 'u.since',
        cause: 'u.cause',
      }
    case 'parked':
      return {
        from: `(select w.id from ${sql.waiting} w where w.parked) w ${keyOf('w')} and k.parked_at is not null left join ${sql.due} u on u.id = k.id`,
        id: 'k.id',
        since: 'k.parked_at',
        cause: 'coalesce(k.last_error_code, u.cause)',
      }
    case 'overdue':
      return {
        // A row may have ended, or beaten, since it was found.
        from: `(select q.id from pg_catalog.unnest(${ids}::uuid[]) q(id)) q ${keyOf('q')} and k.state = ${state.in_progress}
            and k.locked_until <= ${sql.now} left join ${sql.due} u on u.id = k.id`,
        id: 'k.id',
        since: 'k.locked_until',
        cause: `'lease-expired'::text`,
      }
  }
}

/** A cursor's instant as the column has it, so that the index on it is entered there: a row of the key would have to be read first. */
const instantOf = (parameter: string) =>
  `(timestamptz '1970-01-01 00:00:00+00' + (${parameter}::bigint::float8 * interval '1 microsecond'))`

const micros = (instant: string) => `(extract(epoch from ${instant}) * 1000000.0)::bigint`

function noteColumns(cause: string): string {
  return `n.acts, n.owner, n.note, ${cause} as cause, ${epochMs('u.since')} as since_ms, ${epochMs('u.look_up_at')} as look_up_at_ms, u.look as looks`
}

function notesStatement(sql: Dialect): string {
  return `select k.fence, k.state, ${epochMs('k.parked_at')} as parked_at_ms, ${epochMs(sql.now)} as now_ms, ${noteColumns('u.cause')}
    from ${sql.keys} k left join ${adminNames(sql).notes} n on n.key_id = k.id left join ${sql.due} u on u.id = k.id where k.id = $1::uuid`
}

/** The oldest first. What is shown of a row is read for the page only. */
export function workStatement(sql: Dialect, listing: WorkListing): string {
  const { from, id, since, cause } = sourceOf(sql, listing.kind, '$9')
  const { operation, scope, cause: ofCause, owner, after, olderThanMs } = listing
  // A parameter that is not used has no type: it is compared with null instead.
  const unless = (given: unknown, parameter: string, condition: string) =>
    given === undefined ? `${parameter} is null` : condition
  const conditions = [
    unless(operation, '$1::text', 'k.operation = $1::text'),
    unless(scope, '$2::text', 'k.scope = $2::text'),
    unless(ofCause, '$3::text', `${cause} = $3::text`),
    unless(owner, '$4::text', 'n.owner = $4::text'),
    unless(after, '$5::bigint', `(${since}, ${id}) > (${instantOf('$5')}, $6::uuid)`),
    unless(after, '$6::uuid', 'true'),
    unless(olderThanMs, '$8::float8', `${since} <= (select ${sql.now}) - ${milliseconds('$8')}`),
  ]
  return `with page as materialized (
      select k.id, ${since} as waits_since, ${noteColumns(cause)}
      from ${from} left join ${adminNames(sql).notes} n on n.key_id = k.id
      where ${conditions.join(' and ')}
      order by ${since}, ${id} limit $7::integer
    )
    select ${recordColumns(sql)}, p.acts, p.owner, p.note, p.cause, p.since_ms, p.look_up_at_ms, p.looks, o.name as effect,
      ${micros('p.waits_since')} as waits_since, ${epochMs('p.waits_since')} as waits_since_ms,
      (select pg_catalog.count(*) from ${sql.evidence} e where e.key_id = k.id) as evidence
    from page p join ${sql.keys} k on k.id = p.id ${openEffect(sql, 'k')} order by p.waits_since, p.id`
}

function workValues({ operation, scope, cause, owner, after, limit, olderThanMs }: WorkListing): readonly unknown[] {
  const texts = [operation, scope, cause, owner].map(text => (text === undefined ? null : readable(text)))
  return [...texts, ...workAfter(after), limit + 1, olderThanMs ?? null]
}

export function groupsStatement(sql: Dialect, kind: WorkKind): string {
  const { from, since, cause } = sourceOf(sql, kind, '$1')
  return `select g.operation, g.cause, pg_catalog.count(*) as count, ${epochMs(`(${sql.now} - pg_catalog.min(g.since))`)} as oldest_ms
    from (select k.operation, ${cause} as cause, ${since} as since from ${from} limit ${groupedMax + 1}) g
    group by g.operation, g.cause order by 3 desc, 1`
}

function unknownSum(sql: Dialect): string {
  return `select pg_catalog.count(*) as count, ${epochMs(`(${sql.now} - pg_catalog.min(s.since))`)} as oldest_ms
    from (select u.since from ${sql.due} u order by u.since, u.id limit ${groupedMax + 1}) s`
}
