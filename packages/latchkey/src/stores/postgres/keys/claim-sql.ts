/** The SQL of a claim: for a row in any state, for one new row, and for a batch of new rows. */
import {
  batchColumns,
  grantedFrom,
  keyWithOutcome,
  mayTakeOver,
  milliseconds,
  oneMore,
  outcomeColumns,
  recordColumns,
  state,
} from '../sql/fragments.ts'
import { batchSettings } from '../sql/functions.ts'
import type { Dialect } from '../sql/names.ts'
import { beginJournal } from '../steps/journal.ts'

/**
 * One round trip. Atomic because the primary key is the arbiter: of any number of inserts one wins, and an existing row is
 * locked and compared again (same fence, state and lease as seen, still grantable) before it changes hands. The lease stands for the steps: each
 * write to them moves it, so that while it stands still the intents are those that the statement's snapshot shows.
 * A row that is not grantable is only read: the insert gets no input row, so a replay locks and writes nothing.
 * The statement has one snapshot: a row committed after it is met by the insert but not by the read. Then neither part
 * returns anything, and the caller repeats with a new snapshot.
 * Without the journal's parts, which every claim would have to plan, an expired row is not granted: it may have one.
 */
export function claimStatement(sql: Dialect, journal?: 'with journal'): string {
  const expired = `(select s.grant_from from seen s) = 'expired'`
  const fresh = `coalesce(${expired}, true)`
  const hands = mayTakeOver('$11', '$12')
  return `with seen as materialized (
    select ${recordColumns(sql)}, ${outcomeColumns}, ${grantedFrom(sql, '$3::bytea', hands)} as grant_from, k.locked_until as lease_end
    from ${keyWithOutcome(sql, '$1')}
  ), granted as (
    insert into ${sql.keys} as k (id, claim_id, fence, created_at, expires_at, locked_until,
      attempts, state, recovery, fingerprint, scope, operation, description, tombstone_ms)
    select $1::uuid, $2::uuid, 1, t.now, t.now + ${milliseconds('$6')}, t.now + ${milliseconds('$5')},
      1, ${state.in_progress}, $4::smallint, $3::bytea, $7::text, $8::text, $9::text, $10::float8::bigint
    from (select ${sql.now} as now) t
    where not exists (select from seen s where s.grant_from is null${journal ? '' : ` or s.grant_from = 'expired'`})
    on conflict (id) do update set
      claim_id = excluded.claim_id,
      fence = k.fence + 1,
      created_at = case when ${expired} then excluded.created_at else k.created_at end,
      granted_at = case when ${expired} then null else excluded.created_at end,
      expires_at = excluded.expires_at,
      locked_until = excluded.locked_until,
      due_at = null,
      completed_at = null,
      attempts = case when ${expired} then 1 else ${oneMore('k.attempts')} end,
      crashes = case when ${expired} then 0 when k.state = ${state.in_progress} then ${oneMore('k.crashes')} else k.crashes end,
      state = excluded.state,
      recovery = excluded.recovery,
      fingerprint = excluded.fingerprint,
      outcome = null,
      description = case when ${fresh} then excluded.description else coalesce(excluded.description, k.description) end,
      last_error_code = case when ${expired} then null else k.last_error_code end,
      tombstone_ms = excluded.tombstone_ms,
      gone_at = null
    where k.fence = (select s.fence from seen s) and k.state = (select s.state from seen s)
      and k.locked_until is not distinct from (select s.lease_end from seen s)
      and ${grantedFrom(sql, 'excluded.fingerprint', hands)} is not null
    returning k.fence, k.attempts, k.crashes
  )${journal ? `, ${beginJournal(sql, { fresh, version: '$13', input: '$14', deadline: '$15' })}` : ''}
  select g.fence as won_fence, g.attempts as won_attempts, g.crashes as won_crashes, s.*
  from (select) one left join granted g on true left join seen s on true`
}

/**
 * The primary key is the claim's arbiter, and a row that can be seen is not offered to it, so that a replay neither locks nor waits. A plan
 * that was cached while the table was small could scan all of it for ever. So it calls a function that is declared expensive, which makes
 * every plan but the one by the primary key cost more.
 */
export function claimNewStatement(sql: Dialect): string {
  return `insert into ${sql.keys} (id, claim_id, fence, created_at, expires_at, locked_until,
      attempts, state, recovery, fingerprint, scope, operation, description)
    select $1::uuid, $2::uuid, 1, ${sql.now}, ${sql.now} + ${milliseconds('$6')}, ${sql.now} + ${milliseconds('$5')},
      1, ${state.in_progress}, $4::smallint, $3::bytea, $7::text, $8::text, $9::text
    where not exists (select from ${sql.keys} s where s.id = $1::uuid and ${sql.functions.oneRow}())
    on conflict (id) do nothing`
}

/** Large outcomes are stored apart and are not among the function's columns. */
export function claimManyStatement(sql: Dialect, first: 'look' | 'insert'): string {
  return `select ${batchColumns(sql)} from ${sql.functions.claimMany}($1::uuid[], $2::uuid[], $3::bytea[], $4::smallint[],
    $5::float8[], $6::float8[], $7::text[], $8::text[], $9::text[], ${first === 'look'}) k`
}

/** The rows of a batch, in the order of its arrays. */
function insertMany(sql: Dialect): string {
  return `insert into ${sql.keys} (id, claim_id, fence, created_at, expires_at, locked_until,
      attempts, state, recovery, fingerprint, scope, operation, description)
    select a.id, a.claim_id, 1, granted, granted + ${milliseconds('a.expires_in_ms')}, granted + ${milliseconds('a.lease_ms')},
      1, ${state.in_progress}, a.recovery, a.fingerprint, a.scope, a.operation, a.description
    from unnest(ids, claim_ids, fingerprints, recoveries, lease_ms, expires_in_ms, scopes, operations, descriptions)
      a (id, claim_id, fingerprint, recovery, lease_ms, expires_in_ms, scope, operation, description)`
}

/**
 * Returns the rows that were there, and nothing for those that were granted: a fresh row has fence 1 and one attempt. Atomic as
 * the statement for one row: the primary key is the arbiter. The arrays are in the order of the identities, and so are the inserts: of
 * two batches with the same keys, the one that meets the other's first row waits there, and none waits for one that waits for it.
 *
 * With `look_first`, rows that can be seen are not offered to the insert, so a replay neither locks nor waits. Without it, a replay
 * costs the insert a look at the index; it also waits for a transaction that is just changing its row, for no longer than any batch waits.
 *
 * What was not inserted is another claim's, which its claim id tells. A row that the insert met and the read does not find answers no
 * request: the whole batch is sent again, each row alone.
 */
export function claimManyFunction(sql: Dialect): string {
  return `create function ${sql.functions.claimMany}(ids uuid[], claim_ids uuid[], fingerprints bytea[], recoveries smallint[],
  lease_ms float8[], expires_in_ms float8[], scopes text[], operations text[], descriptions text[], look_first boolean)
returns setof ${sql.keys} ${batchSettings} as $latchkey$
declare
  granted timestamptz := ${sql.now};
  won bigint;
  seen bigint;
begin
  if look_first then
    ${insertMany(sql)}
    where a.id <> all (array(select s.id from ${sql.keys} s where s.id = any (ids)))
    on conflict (id) do nothing;
  else
    ${insertMany(sql)}
    on conflict (id) do nothing;
  end if;
  get diagnostics won = row_count;
  if won = pg_catalog.cardinality(ids) then return; end if;
  return query select k.* from ${sql.keys} k where k.id = any (ids) and k.claim_id <> all (claim_ids);
  get diagnostics seen = row_count;
  if won + seen <> pg_catalog.cardinality(ids) then
    raise serialization_failure using message = 'a row came and went while its batch was claimed';
  end if;
end $latchkey$;

`
}
