/** Expired rows, deleted in batches, from any number of processes at once. */
import type { Store } from '../../../ports/store.ts'
import type { RunStatement } from '../connection/statement.ts'
import { becomesTombstone, expiryOf, isExpired, milliseconds } from '../sql/fragments.ts'
import type { Dialect } from '../sql/names.ts'
import { dropJournals } from '../steps/journal.ts'

/** `eraseMarked`: continues the erasures of tenants. */
export function reapCall(
  sql: Dialect,
  run: RunStatement,
  eraseMarked: (limit: number) => Promise<number>,
): Pick<Store, 'reap'> {
  const text = reapStatement(sql)
  return {
    async reap({ limit }) {
      const reaped = await run(text, [limit])
      return reaped.length + (await eraseMarked(limit))
    },
  }
}

/**
 * Atomic: rows are locked, compared again and deleted with their outcome, evidence and journal in one statement, or stripped of them
 * where a tombstone has to stay: its expiry moves to the tombstone's, so that no pass finds it again before. The time is read in a
 * sub-select because only then the index can be used; oldest first, to ten seconds.
 */
export function reapStatement(sql: Dialect): string {
  const stays = becomesTombstone(sql)
  return `with expired as materialized (
      select k.id, ${stays} as stays from ${sql.keys} k
      where k.expires_at <= (select ${sql.now}) and (${isExpired(sql)} or ${stays})
        and ${expiryOf('k.expires_at')} <= (select ${sql.now})
      order by ${expiryOf('k.expires_at')} limit $1 for update skip locked
    ), deleted as (
      delete from ${sql.keys} k where k.id = any(array(select e.id from expired e where not e.stays)) returning k.id
    ), stripped as (
      update ${sql.keys} k set gone_at = ${sql.now}, outcome = null, expires_at = k.expires_at + ${milliseconds('k.tombstone_ms')}
      where k.id = any(array(select e.id from expired e where e.stays)) returning k.id
    ), gone as (
      select d.id from deleted d union all select s.id from stripped s
    ), outcomes_gone as (
      delete from ${sql.outcomes} o where o.id = any(array(select g.id from gone g))
    ), evidence_gone as (
      delete from ${sql.evidence} e where e.key_id = any(array(select g.id from gone g))
    ), ${dropJournals(sql, 'gone')}
    select g.id from gone g`
}
