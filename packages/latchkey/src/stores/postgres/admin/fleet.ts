/** What the processes of the fleet say of themselves: their workers, and how often what happened. */
import type { AdminRecords, RateQuery } from '../../../ports/faculties/admin.ts'
import { decidedKeptMs, fleetKeptMs } from '../../shared/admin/limits.ts'
import {
  type RateColumns,
  rateOf,
  type RateSumColumns,
  rateSumOf,
  type WorkerColumns,
  workerOf,
} from '../../shared/admin/rows.ts'
import { readable } from '../sql/columns.ts'
import { epochMs, milliseconds } from '../sql/fragments.ts'
import { adminNames, type Dialect } from '../sql/names.ts'
import type { Connections } from './transaction.ts'

type FleetCalls = Pick<AdminRecords, 'beat' | 'workers' | 'addRates' | 'rates' | 'rateSums' | 'prune'>

export function fleetCalls({ sql, run }: Connections): FleetCalls {
  const texts = fleetStatements(sql)
  return {
    async beat(beats) {
      await run(texts.beat, [
        beats.map(({ process }) => readable(process)),
        beats.map(({ loop }) => loop),
        beats.map(({ lastTurnAgoMs }) => lastTurnAgoMs ?? null),
        beats.map(({ turns }) => turns),
        beats.map(({ failures }) => failures),
        beats.map(({ lastError }) => (lastError === undefined ? null : readable(lastError))),
        beats.map(({ detail }) => (detail === undefined ? null : readable(detail))),
      ])
    },
    workers: async () => (await run<WorkerColumns>(texts.workers, [])).map(workerOf),
    async addRates(rates) {
      await run(texts.addRates, [
        rates.map(({ operation }) => readable(operation)),
        rates.map(({ metric }) => metric),
        rates.map(({ count }) => count),
      ])
    },
    rates: async query => (await run<RateColumns>(texts.rates, wanted(query))).map(rateOf),
    rateSums: async query => (await run<RateSumColumns>(texts.rateSums, wanted(query))).map(rateSumOf),
    async prune({ limit }) {
      let pruned = 0
      for (const text of texts.prune) pruned += (await run(text, [limit])).length
      return pruned
    },
  }
}

function wanted({ sinceMs, metrics }: RateQuery): [number, readonly string[]] {
  return [Math.min(sinceMs, fleetKeptMs), metrics]
}

function fleetStatements(sql: Dialect) {
  const { workers, rates, proposals, bulk, bulkRows } = adminNames(sql)
  const { now } = sql
  const isWanted = `r.minute >= (select ${now}) - ${milliseconds('$1')} and r.metric = any($2::text[])`
  const kept = milliseconds(`'${fleetKeptMs}'`)
  const decidedKept = milliseconds(`'${decidedKeptMs}'`)
  return {
    // In one order, so that processes which write at once wait for each other and do not lock each other out.
    beat: `insert into ${workers} as w (process, loop, seen_at, last_turn_at, turns, failures, last_error, detail)
      select b.process, b.loop, t.now, t.now - ${milliseconds('b.ago')}, b.turns, b.failures, b.error, b.detail
      from unnest($1::text[], $2::text[], $3::float8[], $4::bigint[], $5::bigint[], $6::text[], $7::text[])
        b(process, loop, ago, turns, failures, error, detail), (select ${now} as now) t
      order by b.process, b.loop
      on conflict (process, loop) do update set seen_at = excluded.seen_at, last_turn_at = excluded.last_turn_at, turns = excluded.turns,
        failures = excluded.failures, last_error = excluded.last_error, detail = excluded.detail`,
    workers: `select w.process, w.loop, ${epochMs(`(${now} - w.seen_at)`)} as seen_ago_ms,
        ${epochMs(`(${now} - w.last_turn_at)`)} as last_turn_ago_ms, w.turns, w.failures, w.last_error, w.detail
      from ${workers} w order by w.seen_at desc limit 1000`,
    addRates: `insert into ${rates} as r (minute, operation, metric, count)
      select pg_catalog.date_trunc('minute', ${now}), g.operation, g.metric, g.count
      from unnest($1::text[], $2::text[], $3::bigint[]) g(operation, metric, count) order by g.operation, g.metric
      on conflict (minute, operation, metric) do update set count = r.count + excluded.count`,
    rates: `select ${epochMs('r.minute')} as minute_ms, r.operation, r.metric, r.count from ${rates} r
      where ${isWanted} order by r.minute, r.operation, r.metric limit 100000`,
    rateSums: `select r.operation, r.metric, pg_catalog.sum(r.count) as count from ${rates} r
      where ${isWanted} group by r.operation, r.metric order by r.operation, r.metric limit 100000`,
    prune: [
      `delete from ${rates} r where (r.minute, r.operation, r.metric) in (select o.minute, o.operation, o.metric from ${rates} o
        where o.minute < (select ${now}) - ${kept} limit $1::integer) returning 1`,
      `delete from ${workers} w where (w.process, w.loop) in (select o.process, o.loop from ${workers} o
        where o.seen_at < (select ${now}) - ${kept} limit $1::integer) returning 1`,
      `delete from ${proposals} p where p.proposal_id = any(array(select o.proposal_id from ${proposals} o
        where o.expires_at < (select ${now}) - ${decidedKept} limit $1::integer)) returning 1`,
      `with old as materialized (select o.bulk_id from ${bulk} o where o.at < (select ${now}) - ${decidedKept} limit $1::integer), rows_gone as (
        delete from ${bulkRows} r where r.bulk_id = any(array(select o.bulk_id from old o)))
        delete from ${bulk} b where b.bulk_id = any(array(select o.bulk_id from old o)) returning 1`,
    ],
  }
}
