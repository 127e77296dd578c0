/** The queues of rows that are out of the ordinary. Each comes from its own index; nothing scans the keys. */
import type { RowNotes, Groups, WorkKind, WorkListing, WorkPage } from '../../../ports/faculties/admin.ts'
import { groupedMax } from '../../shared/admin/limits.ts'
import { groupsOf, type NotesColumns, notesOf, workAfter, type WorkColumns, workPage } from '../../shared/admin/rows.ts'
import { stateCodes, stepStateCodes } from '../../shared/codes.ts'
import type { Handle } from '../connection/handle.ts'
import { keyColumns, readNowMs, storable } from '../keys/row.ts'
import { nowMsSql } from '../migrations/index.ts'
import { rowsAs } from './columns.ts'

const { in_progress: inProgress } = stateCodes

interface Source {
  readonly from: string
  readonly where: string
  readonly since: string
  readonly cause: string
}

const causeSql = `COALESCE(k.last_error_code, 'lease-expired')`

/** CROSS JOIN: SQLite reads the queue first, and not the keys. */
const sources: Readonly<Record<WorkKind, Source>> = {
  unknown: {
    from: 'latchkey_lookups AS l CROSS JOIN latchkey_keys AS k ON k.id = l.id',
    where: '1',
    since: 'l.since_ms',
    cause: causeSql,
  },
  parked: {
    from: 'latchkey_keys AS k LEFT JOIN latchkey_lookups AS l ON l.id = k.id',
    where: 'k.parked_at_ms IS NOT NULL',
    since: 'k.parked_at_ms',
    cause: causeSql,
  },
  overdue: {
    from: 'latchkey_keys AS k LEFT JOIN latchkey_lookups AS l ON l.id = k.id',
    where: `k.state = ${inProgress} AND k.locked_until_ms <= ?1`,
    since: 'k.locked_until_ms',
    cause: `'lease-expired'`,
  },
}

const noteColumns = (cause: string) =>
  `n.acts, n.owner, n.note, ${cause} AS cause, l.since_ms, l.look_up_at_ms, l.look AS looks`

const notesSql = `
  SELECT k.fence, k.state, k.parked_at_ms, ${nowMsSql} AS now_ms, ${noteColumns(causeSql)}
  FROM latchkey_keys AS k LEFT JOIN latchkey_notes AS n ON n.id = k.id LEFT JOIN latchkey_lookups AS l ON l.id = k.id WHERE k.id = ?1`

export function notes(handle: Handle, id: string): RowNotes | undefined {
  const [row] = rowsAs<NotesColumns>(handle, notesSql, [id])
  return row && notesOf(row)
}

/** The oldest first. ?1 is now; what is not given is not compared. */
export function workSql(listing: WorkListing): string {
  const { from, where, since, cause } = sources[listing.kind]
  const conditions = [where, '?8 > 0']
  if (listing.operation !== undefined) conditions.push('k.operation = ?2')
  if (listing.scope !== undefined) conditions.push('k.scope = ?3')
  if (listing.cause !== undefined) conditions.push(`${cause} = ?4`)
  if (listing.owner !== undefined) conditions.push('n.owner = ?5')
  if (listing.after !== undefined) conditions.push(`(${since}, k.id) > (?6, ?7)`)
  if (listing.olderThanMs !== undefined) conditions.push(`${since} <= ?1 - ?9`)
  return `
    SELECT ?1 AS now_ms, ${keyColumns}, ${noteColumns(cause)}, ${since} AS waits_since, ${since} AS waits_since_ms,
      (SELECT s.name FROM latchkey_steps AS s WHERE s.id = k.id AND s.state = ${stepStateCodes.open} ORDER BY s.position LIMIT 1) AS effect,
      (SELECT COUNT(*) FROM latchkey_evidence AS e WHERE e.id = k.id) AS evidence
    FROM ${from} LEFT JOIN latchkey_notes AS n ON n.id = k.id
    WHERE ${conditions.join(' AND ')} ORDER BY ${since}, k.id LIMIT ?8`
}

export function work(handle: Handle, listing: WorkListing): WorkPage {
  const { operation, scope, cause, owner, after, limit, olderThanMs } = listing
  const texts = [operation, scope, cause, owner].map(text => (text === undefined ? null : storable(text)))
  const [since, id] = workAfter(after)
  const values = [
    readNowMs(handle),
    ...texts,
    since === null ? null : Number(since),
    id,
    limit + 1,
    olderThanMs ?? null,
  ]
  // The last parameter is bound only where the statement has it: SQLite refuses one more than there are.
  const bound = olderThanMs === undefined ? values.slice(0, -1) : values
  return workPage(rowsAs<WorkColumns>(handle, workSql(listing), bound), limit)
}

export function groupsSql(kind: WorkKind): string {
  const { from, where, since, cause } = sources[kind]
  return `
    SELECT g.operation, g.cause, COUNT(*) AS count, ?1 - MIN(g.since) AS oldest_ms
    FROM (SELECT k.operation, ${cause} AS cause, ${since} AS since FROM ${from} WHERE ${where} LIMIT ${groupedMax + 1}) AS g
    GROUP BY g.operation, g.cause ORDER BY 3 DESC, 1`
}

export function groups(handle: Handle, kind: WorkKind): Groups {
  const rows = handle.rows(groupsSql(kind), [readNowMs(handle)])
  const found = rows.map(row => ({
    operation: String(row.operation),
    cause: row.cause === null ? undefined : String(row.cause),
    count: Number(row.count),
    oldestMs: Number(row.oldest_ms),
  }))
  return groupsOf(found)
}
