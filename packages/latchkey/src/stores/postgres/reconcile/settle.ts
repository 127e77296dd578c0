/** A person's verdict on an unknown row, with its evidence and its audit entry in the same commit. */
import { LatchkeyError } from '../../../ports/errors.ts'
import type { FoundVerdict } from '../../../ports/reconciliation.ts'
import type { Act, SettleResult, Store } from '../../../ports/store.ts'
import { rowStateOf } from '../../shared/codes.ts'
import type { RawNumber } from '../../shared/record-row.ts'
import { hasForeignRecovery } from '../sql/fragments.ts'
import { readable } from '../sql/values.ts'
import type { Dialect } from '../sql/names.ts'
import type { Run } from '../connection/statement.ts'
import { fitsTheQuestion, openEffect, settleJudged, settlesTo, verdictValues } from './settle-row.ts'

/** A person's act meets another act on the same row once, perhaps twice; not ten times. */
const actsMax = 10

interface SettleRow {
  readonly state: RawNumber
  readonly kind: 'settled' | 'wrong-verdict' | 'unreadable'
  readonly effect: string | null
  readonly acted: boolean
}

export function settleCall(sql: Dialect, run: Run): Pick<Store, 'settle'> {
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
  // Unknown when looked at, and yet not changed: somebody was faster. Look again.
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
      insert into ${sql.audit} (key_id, act, actor, reason, detail, at)
      select s.id, 'settle', $2::text, $3::text, pg_catalog.concat_ws(' ', e.verdict, e.status, j.name, 'fence', s.fence), ${sql.now}
      from settled s, said e, judged j
    )
    select j.state, j.kind, j.name as effect, exists (select from settled) as acted from judged j`
}
