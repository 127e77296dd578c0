/** Rows whose owner is silent, by their recovery. */
import type { Swept } from '../../../ports/store.ts'
import { isStuck } from '../steps/journal.ts'
import type { Tables } from '../tables.ts'
import { isDead, unknownRow } from './row.ts'

export function sweep(tables: Tables, { limit, id }: { limit: number; id?: string }): readonly Swept[] {
  const nowMs = tables.now()
  return [...tables.rows.values()]
    .filter(row => isDead(row, nowMs) && (id === undefined || row.id === id))
    .filter(row => row.recovery !== 'resume' || isStuck(tables, row.id))
    .sort((left, right) => left.lockedUntilMs - right.lockedUntilMs)
    .slice(0, limit)
    .map(row => {
      const to = row.recovery === 'rerun' ? 'failed_retryable' : 'unknown'
      const crashed = { ...row, crashes: row.crashes + 1, dueAtMs: nowMs }
      tables.rows.set(row.id, to === 'unknown' ? unknownRow(crashed, nowMs) : { ...crashed, state: to })
      return { id: row.id, operation: row.operation, to }
    })
}
