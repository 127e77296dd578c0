/** The third migration, to the letter what databases have: it never changes. `schema`: quoted. */
export function outboxTables(schema: string): string {
  return messagesTable(schema) + lanesTable(schema) + parkedTable(schema) + notesTables(schema)
}

// `xid` is the youngest transaction that had ended, or the row's own if that is younger, when the row was appended. The row's own is never
// younger than it, so below the horizon every row with a smaller `xid` is there, committed or never to come. The row's
// own alone would do for that; but a transaction may have its number long before it gets its turn on an aggregate, and
// would overtake the one before it. This value rises with every turn. Within one value, `id` does.
function messagesTable(schema: string): string {
  return `create table ${schema}.outbox (
  id bigint generated always as identity primary key,
  xid xid8 not null default greatest(pg_current_xact_id(),
    ((pg_snapshot_xmax(pg_current_snapshot())::text)::bigint - 1)::text::xid8),
  lane smallint not null,
  aggregate text collate "C",
  dedup_id text collate "C" not null,
  topic text collate "C" not null,
  payload bytea not null,
  headers text collate "C" not null,
  created_at timestamptz not null,
  constraint outbox_lane_exists check (lane between 0 and 7)
) with (autovacuum_vacuum_insert_scale_factor = 0.1);
create index outbox_in_order on ${schema}.outbox (lane, xid, id);

`
}

// A page for a few rows, and nothing indexed but the lane: every batch is one heap-only update.
function lanesTable(schema: string): string {
  return `create table ${schema}.outbox_lanes (
  lane smallint primary key,
  fence bigint not null default 0,
  lease_id text collate "C",
  locked_until timestamptz,
  leased_at timestamptz,
  cursor_xid xid8 not null default '0',
  cursor_id bigint not null default 0,
  crashes smallint not null default 0,
  probing boolean not null default false,
  constraint outbox_lanes_lease_has_an_end check ((lease_id is null) = (locked_until is null))
) with (fillfactor = 20);
insert into ${schema}.outbox_lanes (lane) select generate_series(0, 7);

`
}

// due_at is null while the message stands behind another one of its aggregate.
function parkedTable(schema: string): string {
  return `create table ${schema}.outbox_parked (
  id bigint primary key,
  xid xid8 not null,
  lane smallint not null,
  aggregate text collate "C",
  blocks boolean not null,
  suspect boolean not null default false,
  attempts integer not null default 0,
  crashes integer not null default 0,
  due_at timestamptz,
  parked_at timestamptz,
  cause text collate "C",
  history jsonb not null default '[]',
  constraint outbox_parked_has_a_cause check (parked_at is null or cause is not null),
  constraint outbox_parked_blocks_an_aggregate check (aggregate is not null or not blocks)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
create index outbox_parked_of_aggregate on ${schema}.outbox_parked (lane, aggregate, xid, id);
create index outbox_parked_due on ${schema}.outbox_parked (lane, due_at) where parked_at is null;
create index outbox_parked_for_people on ${schema}.outbox_parked (id) where parked_at is not null;

`
}

function notesTables(schema: string): string {
  return `-- Only of messages whose downstream said what it calls them.
create table ${schema}.outbox_delivered (
  id bigint primary key,
  downstream_id text collate "C" not null,
  at timestamptz not null
);

create table ${schema}.outbox_audit (
  audit_id bigint generated always as identity primary key,
  message_id bigint not null,
  act text collate "C" not null,
  actor text collate "C" not null,
  reason text collate "C" not null,
  at timestamptz not null,
  constraint outbox_audit_act_is_known check (act in ('redrive')),
  constraint outbox_audit_names_the_actor check (actor <> ''),
  constraint outbox_audit_gives_a_reason check (reason <> '')
);
create index outbox_audit_of_message on ${schema}.outbox_audit (message_id);

`
}
