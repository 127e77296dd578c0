/** The queue of exceptional rows: an entry exists exactly while its key is unknown, because both change in one statement. */
import { state } from '../sql/fragments.ts'
import type { Dialect } from '../sql/names.ts'

/**
 * `from` has id and state; rows in another state than unknown are skipped. When the first look-up is due is not written here: a
 * sweeper does not know what was registered for the operation.
 */
export function queueUnknown(sql: Dialect, from: string, cause: string): string {
  return `queued as (
      insert into ${sql.due} (id, cause, since)
      select f.id, ${cause}, ${sql.now} from ${from} f where f.state = ${state.unknown}
      on conflict (id) do update set cause = excluded.cause, since = excluded.since,
        look_up_at = null, tries = 0
    )`
}

/** For a statement whose `$1` is the identity. */
export function unqueue(sql: Dialect, from: string): string {
  return `unqueued as (delete from ${sql.due} d where d.id = $1::uuid and exists (select from ${from}))`
}
