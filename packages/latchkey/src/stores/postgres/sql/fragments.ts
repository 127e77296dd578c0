/** The fragments that statements share. */
import { recoveryCodes as recovery, stateCodes as state, stepStateCodes as stepState } from '../../shared/codes.ts'
import type { Dialect } from './names.ts'

export { recovery, state, stepState }

/** A parameter in milliseconds, as an interval. */
export function milliseconds(parameter: string): string {
  return `(${parameter}::float8 * interval '1 millisecond')`
}

/**
 * With a decimal point: no operator of the server matches a numeric times an integer exactly, so a role with a schema in the caller's
 * path could offer one that does. For the same reason every statement names functions with their schema.
 */
export function epochMs(instant: string): string {
  return `(extract(epoch from ${instant}) * 1000.0)::float8`
}

/** When a row expires, to ten seconds: what the reaper's index holds. Never later than the expiry itself. */
export function expiryOf(expiresAt: string): string {
  return `pg_catalog.date_bin(interval '10 seconds', ${expiresAt}, timestamptz '2000-01-01 00:00:00+00')`
}

/** When the row `k` was granted last. The column is null while that was when it was created. The sweeper's index has it to the letter. */
export const grantedAt = 'coalesce(k.granted_at, k.created_at)'

/** One more, up to what a column of two bytes holds: an error in its place would hold up the row. */
export function oneMore(counter: string): string {
  return `least(${counter} + 1, 32767)`
}

/** The rows `k` in the bucket of this scope, by the index on it: those of other scopes are among them. */
export function inBucketOf(scope: string): string {
  return `(pg_catalog.hashtext(k.scope) & 255) = (pg_catalog.hashtext(${scope} collate "C") & 255)`
}

/** The columns of `RecordRow`, from the row `k`, and the store's time. */
export function recordColumns(sql: Dialect): string {
  return columnsWith(sql, 'k.fingerprint')
}

/** The same for a batch, and the outcome that is packed into the row. Bytes are text: the driver is not asked what a column holds. */
export function batchColumns(sql: Dialect): string {
  return `${columnsWith(sql, asHex('k.fingerprint'))}, ${asHex('k.outcome')} as outcome_packed`
}

function asHex(bytes: string): string {
  return `pg_catalog.encode(${bytes}, 'hex')`
}

function columnsWith({ now }: Dialect, fingerprint: string): string {
  return `k.id, k.scope, k.operation, k.state, k.recovery, ${fingerprint} as fingerprint, k.fence, k.claim_id, k.attempts, k.crashes,
    ${epochMs('k.locked_until')} as locked_until_ms, ${epochMs('k.due_at')} as due_at_ms,
    ${epochMs('k.created_at')} as created_at_ms, ${epochMs('k.completed_at')} as completed_at_ms,
    ${epochMs('k.expires_at')} as expires_at_ms, ${epochMs('k.parked_at')} as parked_at_ms,
    k.tombstone_ms, ${epochMs('k.gone_at')} as gone_at_ms,
    k.description, k.last_error_code, ${epochMs(now)} as now_ms`
}

/** The columns of `OutcomeRow`, from the rows `k` and `o`. */
export const outcomeColumns: string = `o.status as outcome_status, o.version as outcome_version, o.headers as outcome_headers,
    o.body as outcome_body, k.outcome as outcome_packed`

/** One key with its outcome, by two primary keys. The outcome of an older grant has another fence and does not match. */
export function keyWithOutcome(sql: Dialect, id: string): string {
  return `${sql.keys} k left join ${sql.outcomes} o on o.id = k.id and o.fence = k.fence and k.state = ${state.completed}
    where k.id = ${id}::uuid`
}

/** The end of a tombstone that the reaper has not reached yet; afterwards the row's expiry is the tombstone's. Null: no tombstone. */
const tombstoneEnd = `(case when k.state = ${state.completed} and k.gone_at is null then k.expires_at + ${milliseconds('k.tombstone_ms')} end)`

/** Finished, past its retention and its tombstone. A parked row waits for a person and never counts as absent. */
export function isExpired({ now }: Dialect): string {
  return `(k.state in (${state.completed}, ${state.failed_retryable}) and k.parked_at is null
        and coalesce(${tombstoneEnd}, k.expires_at) <= ${now})`
}

/** Of a row that is past its expiry: a tombstone has to stay. */
export function becomesTombstone({ now }: Dialect): string {
  return `coalesce(${tombstoneEnd} > ${now}, false)`
}

/** A recovery code of a newer version: this version does not know what may happen to the row. */
export function hasForeignRecovery(row: string): string {
  return `${row}.recovery not in (${Object.values(recovery).join(', ')})`
}

/** From which state the row `k` would be granted to a request with this fingerprint; null: not grantable. `mayTakeOver`: a further condition. */
export function grantedFrom(sql: Dialect, fingerprint: string, mayTakeOver?: string): string {
  return `case
      when ${isExpired(sql)} then 'expired'
      ${mayTakeOver === undefined ? '' : `when not ${mayTakeOver} then null`}
      when k.parked_at is not null or k.fingerprint <> ${fingerprint} or ${hasForeignRecovery('k')} then null
      when k.state = ${state.pending} and k.due_at <= ${sql.now} then 'pending'
      when k.state = ${state.failed_retryable} and k.due_at <= ${sql.now} then 'failed_retryable'
      when k.state = ${state.in_progress} and k.locked_until <= ${sql.now} and (k.recovery = ${recovery.rerun}
        or k.recovery = ${recovery.resume} and not ${hasBlockingIntent(sql)}) then 'dead-lease'
    end`
}

/** Whether the row `k` may change hands, by the two parameters that hold these values. */
export function mayTakeOver(fence: string, claimId: string): string {
  return `(${fence}::bigint is null or (k.fence = ${fence}::bigint and k.claim_id = ${claimId}::uuid) is true)`
}

/** Phased work of the row `k` may have had an effect that must not be repeated: an intent is open, and its window is past. */
export function hasBlockingIntent(sql: Dialect): string {
  return `exists (select from ${sql.steps} open_step where open_step.id = k.id
        and open_step.state = ${stepState.open} and (open_step.repeat_until > ${sql.now}) is not true)`
}

/**
 * Stores the outcome of the rows of a common table expression, unless it is packed into the row itself, and removes what an
 * older grant of the same identity left.
 * The conflict clause is for an orphan that a reaper could not see: an answer must never be refused because of it. `$1` is the
 * identity. At fence 1 there is nothing older: the comparison is with null, and the index is not read.
 */
export function storeOutcome(
  sql: Dialect,
  from: string,
  [status, version, headers, body, packed]: OutcomeParameters,
): string {
  return `stored as (
      insert into ${sql.outcomes} (id, fence, status, version, headers, body)
      select f.id, f.fence, ${status}::smallint, ${version}::integer, ${headers}::text, ${body}::bytea from ${from} f
      where ${packed}::bytea is null
      on conflict (id, fence) do update
      set status = excluded.status, version = excluded.version, headers = excluded.headers, body = excluded.body
    ), outdated as (
      delete from ${sql.outcomes} o
      where o.id = $1::uuid and o.fence < (select f.fence from ${from} f where f.fence > 1)
    )`
}

/** As `outcomeValues` has them. */
export type OutcomeParameters = readonly [
  status: string,
  version: string,
  headers: string,
  body: string,
  packed: string,
]
