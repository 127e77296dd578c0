/** The first migration, to the letter what databases have: it never changes. `schema`: quoted. */
export function keyTables(schema: string): string {
  return schemaTables(schema) + keysTable(schema) + outcomesTable(schema) + operatorTables(schema)
}

function schemaTables(schema: string): string {
  return `do $$ begin
  -- "if not exists" asks for the right to create schemas even where the schema exists.
  if to_regnamespace('${schema}') is null then create schema ${schema}; end if;
end $$;

create table ${schema}.migrations (
  version integer primary key,
  name text collate "C" not null,
  applied_at timestamptz not null default clock_timestamp()
);

`
}

// No index on a column that changes in a normal life: claim, heartbeat and complete are then heap-only updates. The
// expiry is written at the grant and as a rule never again, so the reaper may have its index; granted_at moves only at a
// re-grant, and its block range index lets the sweeper look at young rows only. All text compares bytewise.
function keysTable(schema: string): string {
  return `create table ${schema}.keys (
  id uuid primary key,
  claim_id uuid not null,
  fence bigint not null,
  created_at timestamptz not null,
  granted_at timestamptz not null,
  expires_at timestamptz not null,
  locked_until timestamptz,
  due_at timestamptz,
  completed_at timestamptz,
  parked_at timestamptz,
  attempts integer not null,
  crashes integer not null default 0,
  state smallint not null,
  recovery smallint not null,
  fingerprint bytea not null,
  scope text collate "C" not null,
  operation text collate "C" not null,
  description text collate "C",
  last_error_code text collate "C",
  constraint keys_fence_rises_from_one check (fence >= 1),
  constraint keys_state_is_known check (state between 0 and 4),
  constraint keys_recovery_is_known check (recovery between 0 and 2),
  constraint keys_in_progress_has_a_lease check ((state = 1) = (locked_until is not null)),
  constraint keys_completed_has_a_time check ((state = 2) = (completed_at is not null)),
  constraint keys_waiting_is_due check ((state in (0, 3)) = (due_at is not null)),
  constraint keys_completed_is_never_parked check (state <> 2 or parked_at is null)
) with (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.02);
create index keys_granted_at on ${schema}.keys using brin (granted_at) with (pages_per_range = 32, autosummarize = on);
create index keys_expires_at on ${schema}.keys (expires_at);

`
}

function outcomesTable(schema: string): string {
  return `create table ${schema}.outcomes (
  id uuid not null,
  fence bigint not null,
  status smallint not null,
  version integer not null,
  headers text collate "C" not null,
  body bytea,
  primary key (id, fence)
);
-- Large bodies are often compressed already, and compressing again would cost the request that stores them.
alter table ${schema}.outcomes alter column body set storage external;

`
}

function operatorTables(schema: string): string {
  return `create table ${schema}.evidence (
  evidence_id bigint generated always as identity primary key,
  key_id uuid not null,
  fence bigint not null,
  claim_id uuid not null,
  source text collate "C" not null,
  verdict text collate "C" not null,
  applied boolean not null,
  at timestamptz not null,
  status smallint,
  version integer,
  headers text collate "C",
  body bytea,
  constraint evidence_source_is_known check (source in ('operator', 'late-owner')),
  constraint evidence_verdict_is_known check (verdict in ('happened', 'never-happened', 'unknown'))
);
create index evidence_of_key on ${schema}.evidence (key_id);

-- One row for each unknown key, so that whoever looks for them scans nothing.
create table ${schema}.due (
  id uuid primary key,
  cause text collate "C" not null,
  since timestamptz not null,
  look_up_at timestamptz not null,
  quarantine_until timestamptz not null
);

create table ${schema}.audit (
  audit_id bigint generated always as identity primary key,
  key_id uuid not null,
  act text collate "C" not null,
  actor text collate "C" not null,
  reason text collate "C" not null,
  detail text collate "C" not null,
  at timestamptz not null,
  constraint audit_act_is_known check (act in ('settle', 'forget')),
  constraint audit_names_the_actor check (actor <> ''),
  constraint audit_gives_a_reason check (reason <> '')
);
create index audit_of_key on ${schema}.audit (key_id);

`
}
