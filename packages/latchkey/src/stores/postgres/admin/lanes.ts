/** The lanes of the outbox, one by one. */
import type { AdminRecords } from '../../../ports/faculties/admin.ts'
import { type LaneFigures, laneReadMax, laneStates, parkedReadMax } from '../../shared/outbox/lane-state.ts'
import type { RawNumber } from '../../shared/record-row.ts'
import { isAfterCursor } from '../outbox/lanes.ts'
import { epochMs } from '../sql/fragments.ts'
import { type Dialect, outboxNames, type OutboxNames } from '../sql/names.ts'
import { type Connections, limited } from './transaction.ts'

type Figure = 'lane' | 'fresh' | 'aside' | 'behind' | 'parked' | 'parked_read'
type LaneRow = Readonly<Record<Figure, RawNumber>> & {
  readonly oldest_ms: RawNumber | null
  readonly lease_id: string | null
  readonly left_ms: RawNumber | null
}

export function laneCalls(connections: Connections): Pick<AdminRecords, 'lanes'> {
  const text = lanesStatement(connections.sql)
  return {
    async lanes() {
      const rows = await limited(connections, run => run<LaneRow>(text, []))
      if (rows === undefined) return { lanes: [], partial: true }
      return { lanes: laneStates(rows.map(figuresOf)), partial: false }
    },
  }
}

function figuresOf(row: LaneRow): LaneFigures {
  const { lease_id: by, left_ms: leftMs } = row
  return {
    lane: Number(row.lane),
    fresh: Number(row.fresh),
    aside: Number(row.aside),
    behind: Number(row.behind),
    parked: Number(row.parked),
    isParkedCut: Number(row.parked_read) > parkedReadMax,
    oldestMs: Number(row.oldest_ms ?? 0),
    lease: by === null ? undefined : { by, leftMs: Math.ceil(Number(leftMs)) },
  }
}

/** No count is of a table: each reads the front of an index, up to its bound. */
export function lanesStatement(sql: Dialect): string {
  const names = outboxNames(sql)
  return `with parked as materialized (
      select p.lane from ${names.parked} p where p.parked_at is not null order by p.id limit ${parkedReadMax + 1}
    )
    select l.lane, f.count as fresh, a.count as aside, a.behind,
      (select pg_catalog.count(*) from parked p where p.lane = l.lane) as parked,
      (select pg_catalog.count(*) from parked) as parked_read,
      ${epochMs(`(${sql.now} - least(f.oldest, a.oldest))`)} as oldest_ms,
      l.lease_id, ${epochMs(`(l.locked_until - ${sql.now})`)} as left_ms
    from ${names.lanes} l cross join lateral (
      select pg_catalog.count(*) as count, pg_catalog.min(m.created_at) as oldest from (
        select o.created_at from ${names.outbox} o where o.lane = l.lane and ${isAfterCursor('o')}
        order by o.xid, o.id limit ${laneReadMax}) m
    ) f cross join lateral (${asidePart(names)}) a
    order by l.lane`
}

/**
 * Those that are not due stand first in the index: as a rule they wait behind the first of their aggregate. The message is looked up in a sub-select,
 * because a join may read all of them.
 */
function asidePart({ outbox, parked }: OutboxNames): string {
  return `
      select pg_catalog.count(*) as count,
        pg_catalog.min((select o.created_at from ${outbox} o where o.id = p.id)) as oldest,
        pg_catalog.count(*) filter (where h.parked_at is not null and (h.xid, h.id) < (p.xid, p.id)) as behind
      from (
        select p.id, p.xid, p.lane, p.aggregate from ${parked} p where p.lane = l.lane and p.parked_at is null
        order by p.due_at desc nulls first limit ${laneReadMax}) p
      left join lateral (
        select q.parked_at, q.xid, q.id from ${parked} q where q.lane = p.lane and q.aggregate = p.aggregate and q.blocks
        order by q.xid, q.id limit 1) h on true
    `
}
