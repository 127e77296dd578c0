/** Stored evidence, applied to its row if the row is of the same generation and still unknown. */
import { LatchkeyError } from '../../../ports/errors.ts'
import type { ApplyOptions, ApplyResult, Reconciliation } from '../../../ports/reconciliation.ts'
import { rowStateOf, stateOf } from '../../shared/codes.ts'
import type { RawNumber } from '../../shared/record-row.ts'
import type { RunStatement } from '../connection/statement.ts'
import { epochMs, hasForeignRecovery, milliseconds, state } from '../sql/fragments.ts'
import type { Dialect } from '../sql/names.ts'
import { fitsTheQuestion, openEffect, settleJudged, settlesTo } from './settle.ts'

/** Each repetition means that the row was settled, or granted again, between the read and the lock. */
const attemptsMax = 10

/** Null in `applied`: no such evidence. In `state`: no such row. In `kind`: nothing to judge, it was not unknown under the lock. */
interface ApplyRow {
  readonly applied: boolean | null
  readonly state: RawNumber | null
  readonly kind: 'settled' | 'too-early' | 'not-applicable' | 'claim-lost' | null
  readonly left_ms: RawNumber | null
  readonly settled_to: RawNumber | null
}

export function applyCall(sql: Dialect, run: RunStatement): Pick<Reconciliation, 'apply'> {
  const texts = {
    subject: `select key_id from ${sql.evidence} where evidence_id = $1::bigint`,
    apply: applyStatement(sql),
  }
  return {
    async apply(evidenceId, options) {
      // What evidence is about never changes, so this read may be older than the statement that acts.
      const [evidence] = /^\d{1,18}$/.test(evidenceId)
        ? await run<{ readonly key_id: string }>(texts.subject, [evidenceId])
        : []
      if (evidence === undefined) return { kind: 'not-applicable', state: undefined }
      const values = applyValues(evidence.key_id, evidenceId, options)
      for (let attempts = 0; attempts < attemptsMax; attempts += 1) {
        const [row] = await run<ApplyRow>(texts.apply, values)
        const result = row && applyResult(row)
        if (result !== undefined) return result
      }
      throw new LatchkeyError('store-unavailable', `the row of identity ${evidence.key_id} keeps changing: try again`)
    },
  }
}

function applyValues(
  id: string,
  evidenceId: string,
  { quarantineMs, retentionMs, lookup }: ApplyOptions,
): readonly unknown[] {
  return [id, evidenceId, quarantineMs, retentionMs, lookup?.id ?? null, lookup?.fence ?? null, lookup?.look ?? null]
}

function applyResult(row: ApplyRow): ApplyResult | undefined {
  const found = row.state === null ? undefined : rowStateOf(Number(row.state))
  if (row.applied === null) return { kind: 'not-applicable', state: found }
  if (row.applied) return { kind: 'applied-before' }
  // Unknown when it was read, and yet not judged or not changed: another call was faster. Read again.
  if (row.kind === null) return found === 'unknown' ? undefined : { kind: 'not-applicable', state: found }
  if (row.kind === 'too-early') return { kind: 'too-early', leftMs: Math.max(0, Math.ceil(Number(row.left_ms))) }
  if (row.kind === 'not-applicable') return { kind: 'not-applicable', state: found }
  if (row.kind === 'claim-lost') return { kind: 'claim-lost' }
  if (row.settled_to === null) return undefined
  return settledTo(Number(row.settled_to))
}

function settledTo(code: number): ApplyResult {
  const to = stateOf(code)
  if (to === 'completed' || to === 'failed_retryable' || to === 'pending') return { kind: 'settled', to }
  throw new LatchkeyError('invariant', `evidence settled a row to ${to}`)
}

/**
 * Atomic: one statement. Row and queue entry are locked and compared before anything is judged, so that of a late owner, an operator,
 * another piece of evidence and this one, one settles the row, and the result of a look-up that was granted again since is not applied.
 * The evidence itself needs no lock: it is marked only together with its row leaving `unknown`, and the row cannot come back
 * there without a new fence.
 */
function applyStatement(sql: Dialect): string {
  const quarantineEnd = `r.since + ${milliseconds('$3')}`
  return `with said as materialized (
      select e.* from ${sql.evidence} e where e.evidence_id = $2::bigint and e.key_id = $1::uuid
    ), seen as materialized (
      select k.fence, k.state from ${sql.keys} k where k.id = $1::uuid
    ), held as materialized (
      select k.id, k.fence, k.recovery, k.created_at, d.since, d.look from ${sql.keys} k join ${sql.due} d on d.id = k.id
      where k.id = $1::uuid and k.state = ${state.unknown} and k.fence = (select s.fence from seen s)
      for update of k, d
    ), judged as materialized (
      select r.id, r.fence, o.position, ${settlesTo} as settles_to, ${epochMs(`(${quarantineEnd} - ${sql.now})`)} as left_ms, case
        when $5::uuid is not null and ($5::uuid, $6::bigint, $7::bigint) is distinct from (r.id, r.fence, r.look) then 'claim-lost'
        when e.at < r.created_at or e.verdict = 'unknown' or ${hasForeignRecovery('r')} or not ${fitsTheQuestion}
          or (e.effect_position, e.effect_epoch) is distinct from (o.position, o.epoch) then 'not-applicable'
        -- A negative from before the end of the quarantine proves nothing, also when it is applied after it.
        when e.verdict = 'never-happened' and e.at < ${quarantineEnd} then 'too-early'
        else 'settled' end as kind
      from said e, held r ${openEffect(sql, 'r')} where not e.applied
    ), ${settleJudged(sql, '$4')}, marked as (
      update ${sql.evidence} e set applied = true, settled_claim = s.claim_id from settled s where e.evidence_id = $2::bigint
    )
    select e.applied, s.state, j.kind, j.left_ms, d.state as settled_to from (select) one left join said e on true
      left join seen s on true left join judged j on true left join settled d on true`
}
