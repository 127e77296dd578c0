/**
 * How an unknown row is settled: the same for an operator and for evidence. And an operator's verdict, with its evidence and its audit
 * entry in the same commit.
 */
import { LatchkeyError } from '../../../ports/errors.ts'
import type { FoundVerdict } from '../../../ports/reconciliation.ts'
import type { Act, SettleResult, Store } from '../../../ports/store.ts'
import { rowStateOf } from '../../shared/codes.ts'
import type { RawNumber } from '../../shared/record-row.ts'
import { lineReturned, writeLines } from '../audit/lines.ts'
import type { RunStatement } from '../connection/statement.ts'
import { outcomeValues } from '../keys/complete.ts'
import { unqueue } from '../keys/unknown-queue.ts'
import { queueWaiting, unlist, waitingColumns } from '../keys/waiting-list.ts'
import { hasForeignRecovery, milliseconds, recovery, state, stepState, storeOutcome } from '../sql/fragments.ts'
import type { Dialect } from '../sql/names.ts'
import { readable } from '../sql/columns.ts'

/** An operator's act meets another act on the same row once, perhaps twice; not ten times. */
const actsMax = 10

interface SettleRow {
  readonly state: RawNumber
  readonly kind: 'settled' | 'wrong-verdict' | 'unreadable'
  readonly effect: string | null
  readonly acted: boolean
}

export function settleCall(sql: Dialect, run: RunStatement): Pick<Store, 'settle'> {
  const text = settleStatement(sql)
  return {
    async settle(id, verdict, act, retentionMs) {
      const values = settleValues(id, verdict, act, retentionMs)
      for (let tries = 0; tries < actsMax; tries += 1) {
        const [row] = await run<SettleRow>(text, values)
        const result = row === undefined ? ({ kind: 'not-found' } as const) : settleResult(row)
        if (result !== undefined) return result
      }
      throw new LatchkeyError('store-unavailable', `the row of identity ${id} keeps changing: try again`)
    },
  }
}

function settleValues(id: string, verdict: FoundVerdict, { by, reason }: Act, retentionMs: number): readonly unknown[] {
  return [id, readable(by), readable(reason), retentionMs, ...verdictValues(verdict)]
}

function settleResult({ state, kind, effect, acted }: SettleRow): SettleResult | undefined {
  if (acted) return { kind: 'settled' }
  const found = rowStateOf(Number(state))
  if (found !== 'unknown') return { kind: 'wrong-state', state: found }
  if (kind === 'unreadable') return { kind: 'wrong-state', state: kind }
  if (kind === 'wrong-verdict') {
    return { kind, needs: effect === null ? 'outcome' : 'value', effect: effect ?? undefined }
  }
  // Unknown when it was read, and yet not changed: another call was faster. Read again.
  return undefined
}

/** Atomic: one statement; evidence and audit are inserted from what the guarded update returned. */
function settleStatement(sql: Dialect): string {
  return `with said as materialized (
      select $5::text as verdict, $6::smallint as status, $7::integer as version, $8::text as headers, $9::bytea as body,
        $10::text as result
    ), judged as materialized (
      select r.id, r.fence, r.state, o.position, o.name, o.epoch, ${settlesTo} as settles_to,
        case when ${hasForeignRecovery('r')} then 'unreadable' when ${fitsTheQuestion} then 'settled' else 'wrong-verdict' end as kind
      from said e, ${sql.keys} r ${openEffect(sql, 'r')} where r.id = $1::uuid
    ), ${settleJudged(sql, '$4')}, proven as (
      insert into ${sql.evidence} (key_id, fence, claim_id, source, verdict, applied, at, status, version, headers, body,
        result, effect_position, effect_name, effect_epoch)
      select s.id, s.fence, s.claim_id, 'operator', e.verdict, true, ${sql.now}, e.status, e.version, e.headers, e.body,
        e.result, j.position, j.name, j.epoch from settled s, said e, judged j
    ), audited as (
      insert into ${sql.audit} (key_id, act, actor, reason, detail, at, scope)
      select s.id, 'settle', $2::text, $3::text, pg_catalog.concat_ws(' ', e.verdict, e.status, j.name, 'fence', s.fence), ${sql.now}, s.scope
      from settled s, said e, judged j
    )
    select j.state, j.kind, j.name as effect, exists (select from settled) as acted from judged j`
}

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
 * statement has read. The update compares fence and state again under the row's lock: a row that ran again and became unknown
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
      returning ${waitingColumns}, k.fence, k.claim_id, k.scope${lineReturned(sql)}
    ), answered as (
      select s.id, s.fence from settled s where s.state = ${state.completed}
    ), ${storeOutcome(sql, 'answered', [said('status'), said('version'), said('headers'), said('body'), 'null'])},
    effect_settled as (
      update ${sql.steps} p set repeat_until = null, result = e.result,
        state = case when e.verdict = 'never-happened' then ${stepState.again} else ${stepState.done} end,
        epoch = case when e.verdict = 'never-happened' then p.epoch + 1 else p.epoch end
      from said e, judged j, settled s where p.id = s.id and p.position = j.position and p.state = ${stepState.open}
    ), ${unqueue(sql, 'settled')}, ${unlist(sql, 'settled')}, ${queueWaiting(sql, 'settled')}${writeLines(sql, 'settled', said('status'))}`
}
