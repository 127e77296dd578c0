/** The fourteenth migration: messages that consumers have parked. To the letter what databases have: it never changes. `schema`: quoted. */

/**
 * due_at is null while a message waits for an operator. `run` rises with every take, and fences it. The causes are not checked here: consumers of a later
 * release may know more of them.
 */
export function inboxTables(schema: string): string {
  return `create table ${schema}.inbox_parked (
  id uuid primary key,
  seq bigint generated always as identity,
  consumer text collate "C" not null,
  operation text collate "C" not null,
  source text collate "C" not null,
  message_id text collate "C",
  type text collate "C",
  content_type text collate "C",
  position text collate "C",
  cause text collate "C" not null,
  key_id uuid,
  attempts integer not null,
  times integer not null default 1,
  is_json boolean not null,
  headers text collate "C" not null,
  payload bytea not null,
  first_parked_at timestamptz not null,
  parked_at timestamptz not null,
  redrive_as text collate "C",
  due_at timestamptz,
  run bigint not null default 0,
  locked_until timestamptz
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
create unique index inbox_parked_in_order on ${schema}.inbox_parked (seq);
create index inbox_parked_to_take on ${schema}.inbox_parked (consumer, operation, seq)
  where due_at is not null or cause = 'unknown';

-- It outlives the messages.
create table ${schema}.inbox_audit (
  audit_id bigint generated always as identity primary key,
  parked_id uuid not null,
  act text collate "C" not null,
  actor text collate "C" not null,
  reason text collate "C" not null,
  detail text collate "C" not null,
  at timestamptz not null,
  constraint inbox_audit_act_is_known check (act in ('redrive', 'discard'))
);
create index inbox_audit_of_message on ${schema}.inbox_audit (parked_id, audit_id);

`
}
