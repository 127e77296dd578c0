/** The fourth migration: what settles an unknown, and work for later. To the letter what databases have: it never changes. */

export function reconciliationTables(schema: string): string {
  return keyColumns(schema) + evidenceColumns(schema) + lookupColumns(schema) + newTables(schema)
}

// `downstream_epoch` is the epoch of the key beside it: the step's own may have risen since, by evidence.
function keyColumns(schema: string): string {
  return `alter table ${schema}.keys add column tombstone_ms bigint, add column gone_at timestamptz,
  -- Not valid: every row there is has no such time, and reading them all to see it would hold up every request.
  add constraint keys_gone_was_completed check (gone_at is null or state = 2) not valid;

alter table ${schema}.inputs add column deadline_at timestamptz;

alter table ${schema}.steps add column downstream_key uuid, add column downstream_epoch integer;
-- A key does not change while its step is tried, recorded and read, so those updates stay heap-only.
create index steps_downstream_key on ${schema}.steps (downstream_key) where downstream_key is not null;

`
}

// `claim_id` is the grant under which it was said; `settled_claim` the one whose unknown it settled. `told` counts how often
// it was said. What the owner says late, and a person, has no ref: each time is a piece of its own.
function evidenceColumns(schema: string): string {
  return `alter table ${schema}.evidence
  add column ref text collate "C",
  add column told integer not null default 1,
  add column effect_position integer,
  add column effect_name text collate "C",
  add column effect_epoch integer,
  add column result text collate "C",
  add column settled_claim uuid,
  drop constraint evidence_source_is_known,
  drop constraint evidence_verdict_is_known,
  add constraint evidence_source_is_known check (source in ('operator', 'late-owner', 'webhook', 'look-up', 'ledger')),
  add constraint evidence_verdict_is_known check (verdict in ('happened', 'declined', 'never-happened', 'unknown')),
  add constraint evidence_effect_is_whole
    check (num_nonnulls(effect_position, effect_name, effect_epoch) in (0, 3)),
  add constraint evidence_answers_one_question check (status is null or result is null);
create unique index evidence_said_once on ${schema}.evidence (key_id, source, ref) where ref is not null;

`
}

// A null in look_up_at: nobody has looked yet, and when somebody shall is for the look-up to say. While somebody looks it is the end of
// that lease, so that one instant says when the row is due; infinity: it is parked. The quarantine is not the
// row's any more either; its column stays for the processes of the version before, which write to it.
function lookupColumns(schema: string): string {
  return `alter table ${schema}.due
  alter column look_up_at drop not null,
  alter column quarantine_until drop not null,
  add column look bigint not null default 0,
  add column tries integer not null default 0;
update ${schema}.due set look_up_at = null, quarantine_until = null;

`
}

function newTables(schema: string): string {
  return `-- Messages, apart from the rows they are about, so that they are known after those have gone.
create table ${schema}.received (
  source text collate "C" not null,
  ref text collate "C" not null,
  at timestamptz not null,
  signed_at_ms double precision not null,
  primary key (source, ref)
);
create index received_at on ${schema}.received (at);

create table ${schema}.ledger_runs (
  name text collate "C" primary key,
  run bigint not null,
  began_at timestamptz not null,
  running_until timestamptz,
  retry_at timestamptz,
  finished_at timestamptz,
  compared bigint,
  missing bigint,
  extra bigint,
  different bigint,
  settled bigint,
  constraint ledger_runs_finished_has_counts
    check ((finished_at is not null) = (num_nonnulls(compared, missing, extra, different, settled) = 5))
);

`
}
