/** Dead leases: each row goes where its recovery leads, in batches, from any number of processes at once. */
import type { Store, Swept } from '../../../ports/store.ts'
import { stateOf } from '../../shared/codes.ts'
import type { RawNumber } from '../../shared/record-row.ts'
import { lineReturned, writeLines } from '../audit/lines.ts'
import type { RunStatement } from '../connection/statement.ts'
import { hasBlockingIntent, oneMore, recovery, state } from '../sql/fragments.ts'
import type { Dialect } from '../sql/names.ts'
import { markedPasses, openRows, passOver, type PassRow } from './sweep-mark.ts'
import { queueUnknown } from './unknown-queue.ts'

type SweptRow = { readonly id: string; readonly operation: string; readonly state: RawNumber }
type SweepRow = PassRow & (SweptRow | { readonly id: null })

export function sweepCall(sql: Dialect, run: RunStatement): Pick<Store, 'sweep'> {
  const texts = { sweepOne: sweepOneStatement(sql), sweep: sweepStatement(sql) }
  const passes = markedPasses()
  return {
    async sweep({ limit, id }) {
      if (id !== undefined) return (await run<SweptRow>(texts.sweepOne, [id])).map(swept)
      const rows = await run<SweepRow>(texts.sweep, [limit, passes.mark()])
      passes.moveTo(rows[0])
      return rows.flatMap(row => (row.id === null ? [] : [swept(row)]))
    },
  }
}

function swept({ id, operation, state }: SweptRow): Swept {
  return { id, operation, to: stateOf(Number(state)) === 'unknown' ? 'unknown' : 'failed_retryable' }
}

/**
 * What may be swept. Phased work that can be resumed is left to a worker. Its steps are read in the statement's snapshot, which is
 * enough: a step that was written since has renewed the lease, and the lease is compared again under the row's lock.
 */
function isDead(sql: Dialect): string {
  return `k.state = ${state.in_progress} and k.locked_until <= ${sql.now}
        and (k.recovery <> ${recovery.resume} or ${hasBlockingIntent(sql)})`
}

/** From `dead`, which holds the locked rows, to the state that their recovery leads to. */
function sweepDead(sql: Dialect): string {
  return `swept as (
      update ${sql.keys} k set locked_until = null, crashes = ${oneMore('k.crashes')},
        state = case when k.recovery = ${recovery.rerun} then ${state.failed_retryable} else ${state.unknown} end,
        due_at = case when k.recovery = ${recovery.rerun} then ${sql.now} end
      where k.id = any(array(select d.id from dead d))
      returning k.id, k.operation, k.state${lineReturned(sql)}
    ), ${queueUnknown(sql, 'swept', `'lease-expired'`)}${writeLines(sql, 'swept')}`
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
 * twice; rows that another sweeper or an owner is just writing are skipped, in one order, so that no process waits.
 */
export function sweepStatement(sql: Dialect): string {
  return `with ${openRows(sql)}, dead as materialized (
      select k.id from ${sql.keys} k
      where k.id = any(array(select o.id from open o where o.locked_until <= ${sql.now} order by o.id)) and ${isDead(sql)}
      order by k.id limit $1 for update skip locked
    ), ${sweepDead(sql)}, ${passOver(sql)}
    select p.now_s, p.next_s, s.id, s.operation, s.state
    from pass p left join swept s on true`
}
