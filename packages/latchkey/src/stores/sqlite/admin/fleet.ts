/** What the processes of the fleet say of themselves: their workers, and how often what happened. */
import type { Rate, RateQuery, RateRow, WorkerBeat, WorkerRow } from '../../../ports/faculties/admin.ts'
import { decidedKeptMs, fleetKeptMs } from '../../shared/admin/limits.ts'
import {
  type RateColumns,
  rateOf,
  type RateSumColumns,
  rateSumOf,
  type WorkerColumns,
  workerOf,
} from '../../shared/admin/rows.ts'
import type { Handle } from '../connection/handle.ts'
import { readNowMs, storable } from '../keys/row.ts'
import { rowsAs } from './columns.ts'

const minuteMs = 60_000

const beatSql = `
  REPLACE INTO latchkey_workers (process, loop, seen_at_ms, last_turn_at_ms, turns, failures, last_error, detail)
  VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)`
const workersSql = `
  SELECT w.process, w.loop, ?1 - w.seen_at_ms AS seen_ago_ms, ?1 - w.last_turn_at_ms AS last_turn_ago_ms, w.turns, w.failures,
    w.last_error, w.detail
  FROM latchkey_workers AS w ORDER BY w.seen_at_ms DESC LIMIT 1000`
const addRateSql = `
  INSERT INTO latchkey_rates AS r (minute_ms, operation, metric, count) VALUES (?1, ?2, ?3, ?4)
  ON CONFLICT (minute_ms, operation, metric) DO UPDATE SET count = r.count + excluded.count`
const wantedRates = 'r.minute_ms >= ?1 AND r.metric IN (SELECT value FROM json_each(?2))'
const ratesSql = `
  SELECT r.minute_ms, r.operation, r.metric, r.count FROM latchkey_rates AS r
  WHERE ${wantedRates} ORDER BY r.minute_ms, r.operation, r.metric LIMIT 100000`
const rateSumsSql = `
  SELECT r.operation, r.metric, SUM(r.count) AS count FROM latchkey_rates AS r
  WHERE ${wantedRates} GROUP BY r.operation, r.metric ORDER BY r.operation, r.metric LIMIT 100000`
const oldBulk = 'SELECT o.bulk_id FROM latchkey_bulk AS o WHERE o.at_ms < ?1 ORDER BY o.at_ms LIMIT ?2'
const pruneSql = {
  rates: `DELETE FROM latchkey_rates WHERE (minute_ms, operation, metric) IN (
    SELECT o.minute_ms, o.operation, o.metric FROM latchkey_rates AS o WHERE o.minute_ms < ?1 LIMIT ?2)`,
  workers: `DELETE FROM latchkey_workers WHERE (process, loop) IN (
    SELECT o.process, o.loop FROM latchkey_workers AS o WHERE o.seen_at_ms < ?1 LIMIT ?2)`,
  proposals: `DELETE FROM latchkey_proposals WHERE seq IN (
    SELECT o.seq FROM latchkey_proposals AS o WHERE o.expires_at_ms < ?1 LIMIT ?2)`,
  bulkRows: `DELETE FROM latchkey_bulk_rows WHERE bulk_id IN (${oldBulk})`,
  bulk: `DELETE FROM latchkey_bulk WHERE bulk_id IN (${oldBulk})`,
}

export function beat(handle: Handle, beats: readonly WorkerBeat[]): void {
  const nowMs = readNowMs(handle)
  for (const { process, loop, lastTurnAgoMs, turns, failures, lastError, detail } of beats) {
    const lastTurnAtMs = lastTurnAgoMs === undefined ? null : Math.floor(nowMs - lastTurnAgoMs)
    const texts = [lastError, detail].map(text => (text === undefined ? null : storable(text)))
    handle.run(beatSql, [storable(process), loop, nowMs, lastTurnAtMs, turns, failures, ...texts])
  }
}

export function workers(handle: Handle): readonly WorkerRow[] {
  return rowsAs<WorkerColumns>(handle, workersSql, [readNowMs(handle)]).map(workerOf)
}

export function addRates(handle: Handle, rates: readonly Rate[]): void {
  const nowMs = readNowMs(handle)
  const minute = nowMs - (nowMs % minuteMs)
  for (const { operation, metric, count } of rates) handle.run(addRateSql, [minute, storable(operation), metric, count])
}

export function rates(handle: Handle, query: RateQuery): readonly RateRow[] {
  return rowsAs<RateColumns>(handle, ratesSql, wanted(handle, query)).map(rateOf)
}

export function rateSums(handle: Handle, query: RateQuery): readonly Rate[] {
  return rowsAs<RateSumColumns>(handle, rateSumsSql, wanted(handle, query)).map(rateSumOf)
}

function wanted(handle: Handle, { sinceMs, metrics }: RateQuery): [number, string] {
  return [Math.floor(readNowMs(handle) - Math.min(sinceMs, fleetKeptMs)), JSON.stringify(metrics)]
}

export function prune(handle: Handle, limit: number): number {
  const nowMs = readNowMs(handle)
  const decided = nowMs - decidedKeptMs
  const old = nowMs - fleetKeptMs
  handle.run(pruneSql.bulkRows, [decided, limit])
  return (
    handle.run(pruneSql.rates, [old, limit]) +
    handle.run(pruneSql.workers, [old, limit]) +
    handle.run(pruneSql.proposals, [decided, limit]) +
    handle.run(pruneSql.bulk, [decided, limit])
  )
}
