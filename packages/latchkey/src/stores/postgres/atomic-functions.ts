/**
 * The two halves of an atomic operation on a fresh key, as functions: one round trip each, and a plan that the session keeps,
 * also where the transaction is a query builder's and its statements cannot be named.
 */
import { byPrimaryKey } from './batch-functions.ts'
import { milliseconds, recovery, state, type Dialect } from './dialect.ts'

export function atomicFunctions(sql: Dialect): string {
  return reserve(sql) + recordFresh(sql) + recordLast(sql)
}

/**
 * Takes the lock, then looks whether there is a row. Two statements in here, too: each takes a snapshot of its own where the
 * isolation allows it, and the one that took the lock may be older than the winner's commit.
 */
function reserve(sql: Dialect): string {
  return `create function ${sql.schema}.reserve(lock_id bigint, key_id uuid, out locked boolean, out found_row boolean, out began text)
${byPrimaryKey} as $latchkey$
begin
  locked := pg_try_advisory_xact_lock(lock_id);
  perform from ${sql.keys} k where k.id = key_id;
  found_row := found;
  began := now()::text;
end $latchkey$;

`
}

/**
 * False: another transaction was first, or this one is not the one that reserved. The primary key is the guard: whoever comes
 * second waits here for the first to end. Only for an identity without a row, and an outcome that is kept with its key.
 */
function recordFresh(sql: Dialect): string {
  return `create function ${sql.schema}.record_fresh(key_id uuid, key_claim_id uuid, key_fingerprint bytea, retention_ms float8,
  key_scope text, key_operation text, key_description text, key_outcome bytea, reserved_at text) returns boolean
language plpgsql as $latchkey$
begin
  insert into ${sql.keys} (id, claim_id, fence, created_at, granted_at, completed_at, expires_at,
    attempts, state, recovery, fingerprint, scope, operation, description, outcome)
  select key_id, key_claim_id, 1, t.now, t.now, t.now, t.now + ${milliseconds('retention_ms')},
    1, ${state.completed}, ${recovery.rerun}, key_fingerprint, key_scope, key_operation, key_description, key_outcome
  from (select ${sql.now} as now offset 0) t
  where now() = reserved_at::timestamptz
  on conflict (id) do nothing;
  return found;
end $latchkey$;

`
}

/** For a message that also holds the COMMIT: what was not recorded must not be committed, so it fails as the lost race it is. */
function recordLast(sql: Dialect): string {
  return `create function ${sql.schema}.record_last(key_id uuid, key_claim_id uuid, key_fingerprint bytea, retention_ms float8,
  key_scope text, key_operation text, key_description text, key_outcome bytea, reserved_at text) returns void
language plpgsql as $latchkey$
begin
  if not ${sql.schema}.record_fresh(key_id, key_claim_id, key_fingerprint, retention_ms, key_scope, key_operation, key_description,
    key_outcome, reserved_at) then
    raise serialization_failure using message = 'another transaction has recorded this identity, or this one was ended';
  end if;
end $latchkey$;

`
}
