/** How an unknown row leaves that state by what somebody found out: the same for a person and for evidence. */
import type { FoundVerdict } from '../../../ports/reconciliation.ts'
import { milliseconds, recovery, state, stepState, storeOutcome } from '../sql/fragments.ts'
import type { Dialect } from '../sql/names.ts'
import { unqueue } from '../keys/unknown-queue.ts'
import { outcomeValues } from '../keys/owner.ts'
import { queueWaiting, unlist, waitingColumns } from '../keys/waiting-list.ts'

/** Verdict, then status, version, headers and body of an outcome, then the result of an effect. */
export function verdictValues(verdict: FoundVerdict): readonly unknown[] {
  const outcome = 'outcome' in verdict ? outcomeValues(verdict.outcome).slice(0, 4) : [null, null, null, null]
  return [verdict.kind, ...outcome, 'value' in verdict ? (verdict.value ?? null) : null]
}

/** The effect in doubt of the row `from`, all null: it has none. Steps of an unknown row change only together with its state. */
export function openEffect(sql: Dialect, from: string): string {
  return `left join lateral (
        select p.position, p.name, p.epoch from ${sql.steps} p
        where p.id = ${from}.id and p.state = ${stepState.open} and ${from}.recovery = ${recovery.resume}
        order by p.position limit 1
      ) o on true`
}

/** A value answers the open effect, an outcome the whole; that nothing happened answers either. */
export const fitsTheQuestion = `(e.verdict = 'never-happened' or (e.status is null) = (o.position is not null))`

/** Where a verdict `e` leads that fits. */
export const settlesTo: string = `case
        when e.verdict = 'never-happened' and r.recovery <> ${recovery.resume} then ${state.failed_retryable}
        when e.verdict = 'never-happened' or o.position is not null then ${state.pending}
        else ${state.completed} end`

/**
 * From `said` (verdict, status, version, headers, body, result) and `judged` (id, fence, kind, settles_to, position), which the
 * statement has looked up. The update compares fence and state again under the row's lock: a row that ran again and became unknown
 * again is another unknown, and the verdict was not about it. All else follows from what it returned. `$1` is the identity.
 */
export function settleJudged(sql: Dialect, retention: string): string {
  const said = (column: string) => `(select e.${column} from said e)`
  return `settled as (
      update ${sql.keys} k set state = j.settles_to, parked_at = null,
        due_at = case when j.settles_to <> ${state.completed} then ${sql.now} end,
        completed_at = case when j.settles_to = ${state.completed} then ${sql.now} end,
        expires_at = greatest(k.expires_at, ${sql.now} + ${milliseconds(retention)})
      from judged j where k.id = j.id and k.fence = j.fence and k.state = ${state.unknown} and j.kind = 'settled'
      returning ${waitingColumns}, k.fence, k.claim_id
    ), answered as (
      select s.id, s.fence from settled s where s.state = ${state.completed}
    ), ${storeOutcome(sql, 'answered', [said('status'), said('version'), said('headers'), said('body'), 'null'])},
    effect_settled as (
      update ${sql.steps} p set repeat_until = null, result = e.result,
        state = case when e.verdict = 'never-happened' then ${stepState.again} else ${stepState.done} end,
        epoch = case when e.verdict = 'never-happened' then p.epoch + 1 else p.epoch end
      from said e, judged j, settled s where p.id = s.id and p.position = j.position and p.state = ${stepState.open}
    ), ${unqueue(sql, 'settled')}, ${unlist(sql, 'settled')}, ${queueWaiting(sql, 'settled')}`
}
