/** Phased work that waits for a worker to resume it. */
import type { Resumable, Store } from '../../../ports/store.ts'
import type { RawNumber } from '../../shared/record-row.ts'
import type { RunStatement } from '../connection/statement.ts'
import { grantedFrom, recovery } from '../sql/fragments.ts'
import type { Dialect } from '../sql/names.ts'
import { markedPasses, openRows, passOver, type PassRow } from './sweep-mark.ts'

interface FoundRow {
  readonly id: string
  readonly scope: string
  readonly operation: string
  readonly fingerprint: Uint8Array
  readonly crashes: RawNumber
  readonly overdue: boolean
}
type ResumableRow = PassRow & (FoundRow | { readonly id: null })

export function resumableCall(sql: Dialect, run: RunStatement): Pick<Store, 'resumable'> {
  const text = resumableStatement(sql)
  const passes = markedPasses()
  return {
    async resumable({ limit }) {
      const rows = await run<ResumableRow>(text, [limit, passes.mark()])
      passes.moveTo(rows[0])
      return rows.flatMap(row => (row.id === null ? [] : [resumableOf(row)]))
    },
  }
}

function resumableOf({ id, scope, operation, fingerprint, crashes, overdue }: FoundRow): Resumable {
  return { identity: { id, scope, operation }, fingerprint, crashes: Number(crashes), overdue }
}

/**
 * Reads only: it is the claim that decides, and this asks the same question. Longest waiting first. A row without an input cannot
 * be resumed: a worker that found it expired has released it.
 */
function resumableStatement(sql: Dialect): string {
  const found = (
    since: string,
    from: string,
  ) => `select k.id, k.scope, k.operation, k.fingerprint, k.crashes, ${since} as since
        from ${from} and k.recovery = ${recovery.resume}`
  const from = grantedFrom(sql, 'k.fingerprint')
  const overdue = `exists (select from ${sql.inputs} i where i.id = f.id and i.deadline_at <= ${sql.now})
      and not exists (select from ${sql.steps} s where s.id = f.id)`
  return `with ${openRows(sql, `k.recovery = ${recovery.resume}`)}, ${passOver(sql)}, found as materialized (
      (${found('k.locked_until', `${sql.keys} k where k.id = any(array(select o.id from open o where o.locked_until <= ${sql.now}))`)}
        and ${from} = 'dead-lease' order by k.locked_until limit $1)
      union all
      (${found('w.due_at', `${sql.waiting} w join ${sql.keys} k on k.id = w.id where not w.parked and w.due_at <= (select ${sql.now})`)}
        and ${from} in ('pending', 'failed_retryable') and exists (select from ${sql.inputs} i where i.id = k.id)
        order by w.due_at limit $1)
      order by since limit $1
    )
    select p.now_s, p.next_s, f.id, f.scope, f.operation, f.fingerprint, f.crashes, ${overdue} as overdue
    from pass p left join found f on true`
}
