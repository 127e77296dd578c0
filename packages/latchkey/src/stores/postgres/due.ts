/** The queue of exceptional rows: an entry exists exactly while its key is unknown, because both change in one statement. */
import { state, type Dialect } from './dialect.ts'

/**
 * How long after an unknown began a provider's "not found" proves nothing yet: the request may still be on its way. Ten
 * minutes where the provider does not deduplicate; that is what is known of every row here.
 */
const quarantine = `interval '10 minutes'`

/** `from` has id and state; rows in another state than unknown are passed over. */
export function queueUnknown(sql: Dialect, from: string, cause: string): string {
  return `queued as (
      insert into ${sql.due} (id, cause, since, look_up_at, quarantine_until)
      select f.id, ${cause}, t.now, t.now + ${quarantine}, t.now + ${quarantine}
      from ${from} f, (select ${sql.now} as now) t where f.state = ${state.unknown}
      on conflict (id) do update set cause = excluded.cause, since = excluded.since,
        look_up_at = excluded.look_up_at, quarantine_until = excluded.quarantine_until
    )`
}

/** For a statement whose `$1` is the identity. */
export function unqueue(sql: Dialect, from: string): string {
  return `unqueued as (delete from ${sql.due} d where d.id = $1::uuid and exists (select from ${from}))`
}
