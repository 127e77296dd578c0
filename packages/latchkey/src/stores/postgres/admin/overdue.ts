/**
 * Rows whose owner is silent. No index has them: each call reads what was granted since its mark, as the sweeper does, and those it finds are read by
 * their primary key. The first call of a process reads an hour.
 */
import { groupedMax, overdueWithinMs } from '../../shared/admin/limits.ts'
import type { RunStatement } from '../connection/statement.ts'
import { markedPasses, openRows, passOver, type PassRow } from '../keys/sweep-mark.ts'
import { grantedAt, milliseconds } from '../sql/fragments.ts'
import type { Dialect } from '../sql/names.ts'

type OverduePass = PassRow & { readonly ids: string | null }

/** The oldest first, up to one more than a list of groups counts. */
export type OverdueIds = (run: RunStatement) => Promise<readonly string[]>

export function overdueIds(sql: Dialect): OverdueIds {
  const text = overdueStatement(sql)
  const passes = markedPasses()
  return async run => {
    const [pass] = await run<OverduePass>(text, [groupedMax + 1, passes.mark()])
    passes.moveTo(pass)
    return pass?.ids?.split(',') ?? []
  }
}

/** `$1`: how many. As one text: not every driver reads a list of ids. */
export function overdueStatement(sql: Dialect): string {
  const inTime = `${grantedAt} >= (select ${sql.now}) - ${milliseconds(`'${overdueWithinMs}'`)}`
  return `with ${openRows(sql, inTime)}, ${passOver(sql)}
    select p.now_s, p.next_s, (select pg_catalog.string_agg(d.id::text, ',' order by d.locked_until, d.id) from (
        select o.id, o.locked_until from open o where o.locked_until <= (select ${sql.now}) order by o.locked_until, o.id limit $1::integer
      ) d) as ids
    from pass p`
}
