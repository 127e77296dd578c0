/** The second migration: the journal of phased work. To the letter what databases have: it never changes. */

// A step is looked up by its key's identity only, so opening and ending an effect is a heap-only update. `waiting` holds
// the rows out of the ordinary, so that neither a resumer nor a person scans for them, and no index on the keys is needed.
export function stepTables(schema: string): string {
  return `create table ${schema}.inputs (
  id uuid primary key,
  version integer not null,
  input text collate "C" not null
);

create table ${schema}.steps (
  id uuid not null,
  position integer not null,
  name text collate "C" not null,
  kind smallint not null,
  state smallint not null,
  epoch integer not null default 0,
  opened_at timestamptz,
  repeat_until timestamptz,
  result text collate "C",
  primary key (id, position),
  constraint steps_position_counts_from_zero check (position >= 0),
  constraint steps_kind_is_known check (kind between 0 and 1),
  constraint steps_state_is_known check (state between 0 and 2),
  constraint steps_phase_is_done check (kind <> 0 or state = 2),
  constraint steps_effect_was_opened check ((kind = 1) = (opened_at is not null)),
  constraint steps_result_is_of_the_done check (state = 2 or result is null)
) with (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.02);

-- Phased rows that wait for their next attempt, and parked rows of any kind. An entry only says where to look.
create table ${schema}.waiting (
  id uuid primary key,
  due_at timestamptz not null,
  parked boolean not null
);
create index waiting_due_at on ${schema}.waiting (due_at) where not parked;

alter table ${schema}.audit drop constraint audit_act_is_known;
alter table ${schema}.audit add constraint audit_act_is_known check (act in ('settle', 'forget', 'unpark'));

`
}
