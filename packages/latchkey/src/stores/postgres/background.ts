/** Sweeping dead leases and reaping expired rows, in batches, from any number of processes at once. */
import type { Store, Swept } from '../../ports/store.ts'
import { stateOf } from '../../sql/codes.ts'
import type { RawNumber } from '../../sql/record-row.ts'
import { isExpired, recovery, state, type Dialect } from './dialect.ts'
import { queueUnknown } from './due.ts'
import type { Run } from './run.ts'

type SweptRow = { readonly id: string; readonly operation: string; readonly state: RawNumber }
type PassRow = { readonly now_s: RawNumber; readonly next_s: RawNumber } & (SweptRow | { readonly id: null })

/** Every so often a sweep looks at all rows, as a net below the mark: a claim may have committed very late. */
const fullPassEveryS = 3_600
/** How long a claim may take from reading the clock to its commit and still be found above the mark. */
const commitLagS = 300

export function backgroundCalls(sql: Dialect, run: Run): Pick<Store, 'sweep' | 'reap'> {
  const texts = { sweepOne: sweepOneStatement(sql), sweep: sweepStatement(sql), reap: reapStatement(sql) }
  // Rows granted before the mark were not in progress at the last pass, and cannot be again without a younger grant. So
  // the lease needs no index, which would cost every claim and every completion, and a pass reads young rows only.
  let markS: number | null = null
  let fullPassAtS = 0
  return {
    async sweep({ limit, id }) {
      if (id !== undefined) return (await run<SweptRow>(texts.sweepOne, [id])).map(swept)
      const rows = await run<PassRow>(texts.sweep, [limit, markS])
      const [pass] = rows
      if (pass !== undefined) {
        const nowS = Number(pass.now_s)
        if (markS === null) fullPassAtS = nowS
        markS = nowS - fullPassAtS >= fullPassEveryS ? null : Number(pass.next_s)
      }
      return rows.flatMap(row => (row.id === null ? [] : [swept(row)]))
    },
    async reap({ limit }) {
      return (await run(texts.reap, [limit])).length
    },
  }
}

function swept({ id, operation, state }: SweptRow): Swept {
  return { id, operation, to: stateOf(Number(state)) === 'unknown' ? 'unknown' : 'failed_retryable' }
}

/** What may be swept: `resume` is for those who know the row's steps. */
function isDead({ now }: Dialect): string {
  return `k.state = ${state.in_progress} and k.locked_until <= ${now} and k.recovery in (${recovery.hold}, ${recovery.rerun})`
}

/** From `dead`, which holds the locked rows, to the state their recovery says. */
function sweepDead(sql: Dialect): string {
  return `swept as (
      update ${sql.keys} k set locked_until = null, crashes = k.crashes + 1,
        state = case when k.recovery = ${recovery.rerun} then ${state.failed_retryable} else ${state.unknown} end,
        due_at = case when k.recovery = ${recovery.rerun} then ${sql.now} end
      where k.id = any(array(select d.id from dead d))
      returning k.id, k.operation, k.state
    ), ${queueUnknown(sql, 'swept', `'lease-expired'`)}`
}

/** Atomic: one statement; the row is locked and compared before it changes, so an owner that beats or ends now wins. */
function sweepOneStatement(sql: Dialect): string {
  return `with dead as materialized (
      select k.id from ${sql.keys} k where k.id = $1::uuid and ${isDead(sql)} for update
    ), ${sweepDead(sql)}
    select s.id, s.operation, s.state from swept s`
}

/**
 * Atomic as the single one. The batch is chosen in a materialized part, because a limit below a join may be evaluated
 * twice; rows that another sweeper or an owner is just writing are skipped, in one order, so that nobody waits.
 */
function sweepStatement(sql: Dialect): string {
  return `with open as materialized (
      select k.id, k.granted_at, k.locked_until from ${sql.keys} k
      where k.state = ${state.in_progress} and k.granted_at >= coalesce(to_timestamp($2::float8), '-infinity')
    ), dead as materialized (
      select k.id from ${sql.keys} k
      where k.id = any(array(select o.id from open o where o.locked_until <= ${sql.now} order by o.id)) and ${isDead(sql)}
      order by k.id limit $1 for update skip locked
    ), ${sweepDead(sql)}, pass as (
      select extract(epoch from t.now)::float8 as now_s,
        -- A millisecond earlier: the number is a little coarser than the instant.
        extract(epoch from coalesce((select min(o.granted_at) from open o) - interval '1 millisecond',
          t.now - interval '${commitLagS} seconds'))::float8 as oldest_s,
        extract(epoch from t.now - interval '${commitLagS} seconds')::float8 as lag_s
      from (select ${sql.now} as now) t
    )
    select p.now_s, least(p.oldest_s, p.lag_s) as next_s, s.id, s.operation, s.state
    from pass p left join swept s on true`
}

/**
 * Atomic: rows are locked, compared again and deleted with their outcome and evidence in one statement. The time is read
 * in a sub-select because only then it can be looked up in the index; oldest first.
 */
function reapStatement(sql: Dialect): string {
  return `with expired as materialized (
      select k.id from ${sql.keys} k
      where k.expires_at <= (select ${sql.now}) and ${isExpired(sql)}
      order by k.expires_at limit $1 for update skip locked
    ), gone as (
      delete from ${sql.keys} k where k.id = any(array(select e.id from expired e)) returning k.id
    ), outcomes_gone as (
      delete from ${sql.outcomes} o where o.id = any(array(select g.id from gone g))
    ), evidence_gone as (
      delete from ${sql.evidence} e where e.key_id = any(array(select g.id from gone g))
    )
    select g.id from gone g`
}
