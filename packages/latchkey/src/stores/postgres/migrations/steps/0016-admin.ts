/** The sixteenth migration: what operators need beside the rows. To the letter what databases have: it never changes. `schema`: quoted. */

export function adminTables(schema: string): string {
  return auditTables(schema) + decisionTables(schema) + fleetTables(schema) + eraseFunction(schema)
}

// The audit is added to and never changed: what is new about an entry stands beside it. An entry without a key is about something else.
function auditTables(schema: string): string {
  return `alter table ${schema}.audit drop constraint audit_act_is_known, alter column key_id drop not null;
create index audit_of_actor on ${schema}.audit (actor, audit_id);

create table ${schema}.audit_details (
  audit_id bigint primary key,
  source text collate "C" not null,
  request_id text collate "C" not null,
  evidence text collate "C",
  from_state smallint,
  to_state smallint,
  fence bigint,
  refused text collate "C"
);
-- A request that acts twice has acted once. Its refused attempts are entries of their own.
create unique index audit_details_request on ${schema}.audit_details (request_id) where refused is null;

-- What operators wrote about a row, and how often they acted on it.
create table ${schema}.notes (
  key_id uuid primary key,
  scope text collate "C" not null,
  owner text collate "C",
  note text collate "C",
  acts bigint not null default 0,
  look_up_asked_at timestamptz
);
create index notes_of_scope on ${schema}.notes (scope);

create index due_by_age on ${schema}.due (since, id);
create index waiting_parked on ${schema}.waiting (id) where parked;

`
}

function decisionTables(schema: string): string {
  return `create table ${schema}.proposals (
  proposal_id uuid primary key,
  seq bigint generated always as identity,
  key_id uuid not null,
  scope text collate "C" not null,
  operation text collate "C" not null,
  act text collate "C" not null,
  detail text collate "C" not null,
  actor text collate "C" not null,
  reason text collate "C" not null,
  evidence text collate "C",
  fence bigint not null,
  version bigint not null,
  at timestamptz not null,
  expires_at timestamptz not null,
  state text collate "C" not null default 'open',
  decided_by text collate "C",
  constraint proposals_state_is_known check (state in ('open', 'approved', 'rejected', 'void'))
);
create index proposals_in_order on ${schema}.proposals ((state = 'open'), seq);
create index proposals_of_scope on ${schema}.proposals (scope);

-- The rows are fixed when it is planned.
create table ${schema}.bulk (
  bulk_id uuid primary key,
  act text collate "C" not null,
  actor text collate "C" not null,
  reason text collate "C" not null,
  detail text collate "C" not null,
  at timestamptz not null,
  valid_until timestamptz not null,
  state text collate "C" not null default 'planned',
  total integer not null,
  constraint bulk_state_is_known check (state in ('planned', 'running', 'done', 'cancelled'))
);
create index bulk_by_age on ${schema}.bulk (at);
create table ${schema}.bulk_rows (
  bulk_id uuid not null,
  at integer not null,
  target text collate "C" not null,
  fence bigint,
  version bigint,
  detail text collate "C",
  result text collate "C",
  primary key (bulk_id, at)
);

`
}

// Not logged: after a crash of the server the processes write them again.
function fleetTables(schema: string): string {
  return `create unlogged table ${schema}.workers (
  process text collate "C" not null,
  loop text collate "C" not null,
  seen_at timestamptz not null,
  last_turn_at timestamptz,
  turns bigint not null,
  failures bigint not null,
  last_error text collate "C",
  detail text collate "C",
  primary key (process, loop)
) with (fillfactor = 70);
create index workers_seen_at on ${schema}.workers (seen_at);

create unlogged table ${schema}.rates (
  minute timestamptz not null,
  operation text collate "C" not null,
  metric text collate "C" not null,
  count bigint not null,
  primary key (minute, operation, metric)
) with (fillfactor = 70);

`
}

/**
 * As erase_audit_11, for what is new: whoever may call that one may call this. It runs before that one, which takes the scope out of the entries by
 * which this one finds its own.
 */
function eraseFunction(schema: string): string {
  return `create function ${schema}.erase_admin_16(erased text, at_most integer) returns integer
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $latchkey$
declare
  blanked integer;
  more integer;
begin
  -- What no erasure was asked for stays.
  if not exists (select from ${schema}.erasures e where e.scope = erased) then return 0; end if;
  with texts as materialized (
    select d.audit_id from ${schema}.audit a join ${schema}.audit_details d on d.audit_id = a.audit_id
    where a.scope = erased and d.evidence is not null limit at_most
  )
  update ${schema}.audit_details d set evidence = null where d.audit_id = any(array(select t.audit_id from texts t));
  get diagnostics blanked = row_count;
  update ${schema}.notes n set note = null where n.key_id = any(array(
    select o.key_id from ${schema}.notes o where o.scope = erased and o.note is not null limit at_most));
  get diagnostics more = row_count;
  blanked := blanked + more;
  delete from ${schema}.proposals p where p.proposal_id = any(array(
    select o.proposal_id from ${schema}.proposals o where o.scope = erased limit at_most));
  get diagnostics more = row_count;
  return blanked + more;
end $latchkey$;
revoke all on function ${schema}.erase_admin_16(text, integer) from public;
do $latchkey$
declare
  other regrole;
begin
  for other in select a.grantee::regrole from pg_catalog.pg_proc p cross join lateral pg_catalog.aclexplode(p.proacl) a
    where p.oid = '${schema}.erase_audit_11(text, integer)'::regprocedure and a.grantee <> p.proowner and a.grantee <> 0
    group by a.grantee
  loop
    execute pg_catalog.format('grant execute on function ${schema}.erase_admin_16(text, integer) to %s', other);
  end loop;
end $latchkey$;

`
}
