/** The lease of a lane: one relay at a time, by the server's clock; the fence decides which relay may write. */
import type { LaneLease, LaneResult, Outbox } from '../../../ports/outbox.ts'
import type { RawNumber } from '../../shared/record-row.ts'
import type { RunStatement } from '../connection/statement.ts'
import { milliseconds } from '../sql/fragments.ts'
import type { Dialect, OutboxNames } from '../sql/names.ts'

type LeaseRow = { readonly lane: RawNumber; readonly fence: RawNumber }

/** More than a usual application has relays, few enough that batches stay large. Part of the schema: `append` hashes by it. */
export const laneCount = 8

/** The lane row `l`, if the lease `$1, $2, $3` still holds it. */
export const isMine = 'l.lane = $1::smallint and l.fence = $2::bigint and l.lease_id = $3::text'

export function leaseValues({ lane, fence, leaseId }: LaneLease): readonly unknown[] {
  return [lane, fence, leaseId]
}

/**
 * No transaction that could still commit a row before it is open. A cursor over the highest id seen would skip what
 * commits late.
 */
export function isBelowHorizon(row: string): string {
  return `${row}.xid < pg_catalog.pg_snapshot_xmin(pg_catalog.pg_current_snapshot())`
}

export function isAfterCursor(row: string): string {
  return `(${row}.xid, ${row}.id) > (l.cursor_xid, l.cursor_id)`
}

/**
 * The row `p` from aside may be delivered now: due, and nothing of its aggregate before it is parked or waits. The time is read
 * in a sub-select, because only then the index can be used: many messages may wait behind one that is parked.
 */
export function isDeliverable({ now }: Dialect, { parked }: OutboxNames): string {
  return `p.parked_at is null and p.due_at <= (select ${now}) and not exists (select from ${parked} q
      where q.lane = p.lane and q.aggregate = p.aggregate and (q.xid, q.id) < (p.xid, p.id) and q.blocks
        and (q.parked_at is not null or q.due_at is null or q.due_at > ${now}))`
}

export function laneCalls(
  sql: Dialect,
  names: OutboxNames,
  run: RunStatement,
): Pick<Outbox<unknown>, 'leaseLane' | 'renewLane' | 'releaseLane'> {
  const texts = {
    lease: leaseStatement(sql, names),
    renew: renewStatement(sql, names),
    release: releaseStatement(names),
  }
  const write = async (text: string, values: readonly unknown[]): Promise<LaneResult> =>
    (await run(text, values)).length === 1 ? 'written' : 'lease-lost'
  return {
    async leaseLane({ leaseId, leaseMs }) {
      const [row] = await run<LeaseRow>(texts.lease, [leaseId, leaseMs])
      return row && { lane: Number(row.lane), fence: Number(row.fence), leaseId }
    },
    renewLane: (lease, leaseMs) => write(texts.renew, [...leaseValues(lease), leaseMs]),
    releaseLane: lease => write(texts.release, leaseValues(lease)),
  }
}

/**
 * Read in order, so that it is one descent of the index: with a plain EXISTS the planner may hope for an early row, and read
 * all messages that were delivered and not pruned yet.
 */
function hasFresh({ outbox }: OutboxNames): string {
  return `(select o.id from ${outbox} o where o.lane = l.lane and ${isAfterCursor('o')} and ${isBelowHorizon('o')}
          order by o.xid, o.id limit 1) is not null`
}

/**
 * Atomic: the lane is locked before it is changed, and a lane that another relay is just leasing is skipped. A lane without
 * work is not written at all, so that idle relays cost reads only. A lease that ran out means that its relay died; when it
 * was delivering a suspect, that one has been counted already.
 */
export function leaseStatement(sql: Dialect, names: OutboxNames): string {
  return `with free as materialized (
      select l.lane from ${names.lanes} l
      where (l.locked_until is null or l.locked_until <= ${sql.now}) and (
        ${hasFresh(names)}
        or exists (select from ${names.parked} p where p.lane = l.lane and ${isDeliverable(sql, names)}))
      order by l.leased_at nulls first, l.lane limit 1 for update skip locked
    )
    update ${names.lanes} l set fence = l.fence + 1, lease_id = $1::text, leased_at = ${sql.now},
      locked_until = ${sql.now} + ${milliseconds('$2')},
      crashes = l.crashes + case when l.locked_until is not null and not l.probing then 1 else 0 end, probing = false
    from free f where l.lane = f.lane returning l.lane, l.fence`
}

function renewStatement(sql: Dialect, { lanes }: OutboxNames): string {
  return `update ${lanes} l set locked_until = ${sql.now} + ${milliseconds('$4')} where ${isMine} returning l.lane`
}

function releaseStatement({ lanes }: OutboxNames): string {
  return `update ${lanes} l set locked_until = null, lease_id = null, crashes = 0, probing = false
    where ${isMine} returning l.lane`
}
