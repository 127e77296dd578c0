/**
 * The rows out of the ordinary: phased ones that wait for their next attempt, and parked ones of any kind. An entry only points to
 * its key; every reader checks the key itself. So a stale entry costs a read and never a wrong answer.
 */
import { recovery, state } from '../sql/fragments.ts'
import type { Dialect } from '../sql/names.ts'

/** `from` has id, state, recovery, due_at and parked_at, as its update left them. */
export function queueWaiting(sql: Dialect, from: string): string {
  return `waits as (
      insert into ${sql.waiting} (id, due_at, parked)
      select f.id, coalesce(f.due_at, ${sql.now}), f.parked_at is not null from ${from} f
      where f.parked_at is not null
        or f.recovery = ${recovery.resume} and f.state in (${state.pending}, ${state.failed_retryable})
      on conflict (id) do update set due_at = excluded.due_at, parked = excluded.parked
    )`
}

export const waitingColumns = 'k.id, k.state, k.recovery, k.due_at, k.parked_at'

/** Takes `$1` off the list, if `from` has its row and nothing of it waits or is parked any more. */
export function unlist(sql: Dialect, from: string): string {
  return `unlisted as (
      delete from ${sql.waiting} w where w.id = $1::uuid and exists (select from ${from} f
        where f.parked_at is null and (f.recovery <> ${recovery.resume} or f.due_at is null))
    )`
}
