/**
 * The two halves of an atomic operation on a new key, as functions: one round trip each, and a plan that the session caches,
 * also where the transaction belongs to a query builder and its statements cannot be named.
 */
import { insertFreshLine } from '../audit/lines.ts'
import { milliseconds, recovery, state } from '../sql/fragments.ts'
import { ownPath } from '../sql/functions.ts'
import type { Dialect } from '../sql/names.ts'

export function atomicFunctions(sql: Dialect): string {
  return reserve(sql) + recordFunctions(sql)
}

export function recordFunctions(sql: Dialect): string {
  return recordFresh(sql) + recordLast(sql)
}

/**
 * Takes the lock, then checks whether there is a row. These are two statements here as well: each takes a snapshot of its own where the
 * isolation level allows it, and the one that took the lock may be older than the winner's commit. Returns in one value whether it has the
 * lock (t or f), whether there is a row (t or f), and when the transaction began: a row of three columns costs more than the check.
 */
function reserve(sql: Dialect): string {
  return `create function ${sql.functions.reserve}(lock_id bigint, key_id uuid) returns text
language plpgsql set ${ownPath} as $latchkey$
declare
  locked boolean := pg_catalog.pg_try_advisory_xact_lock(lock_id);
begin
  perform from ${sql.keys} k where k.id = key_id and ${sql.functions.oneRow}();
  return case when locked then 't' else 'f' end || case when found then 't' else 'f' end || pg_catalog.now()::text;
end $latchkey$;

`
}

/** The columns of a row that an atomic operation records, but for its outcome. */
export const recordedColumns = `id, claim_id, fence, created_at, completed_at, expires_at,
      attempts, state, recovery, fingerprint, scope, operation, description`

/** What stands for each value in a statement. */
export interface RecordedRow {
  readonly id: string
  readonly claimId: string
  readonly fence: string
  readonly now: string
  readonly retentionMs: string
  readonly fingerprint: string
  readonly scope: string
  readonly operation: string
  readonly description: string
}

/** The values of `recordedColumns`: completed at its first attempt. */
export function recordedValues(row: RecordedRow): string {
  const { now } = row
  return `${row.id}, ${row.claimId}, ${row.fence}, ${now}, ${now}, ${now} + ${milliseconds(row.retentionMs)},
      1, ${state.completed}, ${recovery.rerun}, ${row.fingerprint}, ${row.scope}, ${row.operation}, ${row.description}`
}

const freshRow: RecordedRow = {
  id: 'key_id',
  claimId: 'key_claim_id',
  fence: '1',
  now: 'done_at',
  retentionMs: 'retention_ms',
  fingerprint: 'key_fingerprint',
  scope: 'key_scope',
  operation: 'key_operation',
  description: 'key_description',
}

const recordParameters = `key_id uuid, key_claim_id uuid, key_fingerprint bytea, retention_ms float8,
  key_scope text, key_operation text, key_description text, key_outcome bytea, reserved_at text`

/** Only for an identity without a row, and an outcome that is stored with its key. `found` is then whether it was recorded. */
function insertFresh(sql: Dialect): string {
  return `
declare
  done_at timestamptz := ${sql.now};
begin
  if pg_catalog.now() = reserved_at::timestamptz then
    insert into ${sql.keys} (${recordedColumns}, outcome)
    values (${recordedValues(freshRow)}, key_outcome)
    on conflict (id) do nothing;
    if found then${insertFreshLine(sql, freshRow, 'key_outcome')}`
}

/**
 * False: another transaction was first, or this one is not the one that reserved. The primary key is the guard: the
 * second transaction waits here for the first to end.
 */
function recordFresh(sql: Dialect): string {
  return `create function ${sql.functions.recordFresh}(${recordParameters}) returns boolean
language plpgsql set ${ownPath} as $latchkey$${insertFresh(sql)} return true; end if;
  end if;
  return false;
end $latchkey$;

`
}

/** For a message that also holds the COMMIT: what was not recorded must not be committed, so it fails as the lost race it is. */
function recordLast(sql: Dialect): string {
  return `create function ${sql.functions.recordLast}(${recordParameters}) returns void
language plpgsql set ${ownPath} as $latchkey$${insertFresh(sql)} return; end if;
  end if;
  raise serialization_failure using message = 'another transaction has recorded this identity, or this one was ended';
end $latchkey$;

`
}
