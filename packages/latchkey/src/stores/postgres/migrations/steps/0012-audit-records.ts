/** The twelfth migration: a trail that outlives the rows. To the letter what databases have: it never changes. */
import { recordFunctions } from '../../atomic/functions.ts'
import { completeManyFunction } from '../../keys/complete.ts'
import { ownPath } from '../../sql/functions.ts'
import { type Dialect, recordingDialect } from '../../sql/names.ts'

export function auditRecordTables(sql: Dialect): string {
  const recording = recordingDialect(sql)
  return (
    tables(sql) +
    completeManyFunction(recording) +
    recordFunctions(recording) +
    expireFunction(sql) +
    handOverFunction(sql) +
    eraseFunction(sql) +
    rights(sql)
  )
}

// By time, so that pages, the retention and the sink read one index from one end. No line is ever updated but by an erasure.
function tables({ schema, auditRecords, auditSink }: Dialect): string {
  return `create table ${auditRecords} (
  at timestamptz not null,
  line_id bigint generated always as identity,
  key_id uuid not null,
  fence bigint not null,
  status smallint,
  what text collate "C" not null,
  scope text collate "C",
  operation text collate "C" not null,
  fingerprint bytea,
  primary key (at, line_id),
  constraint audit_records_what_is_known check (what in ('completed', 'failed', 'parked', 'unknown', 'resumed', 'misuse'))
) with (autovacuum_vacuum_insert_scale_factor = 0.1);
create index audit_records_of_key on ${auditRecords} (key_id);
create index audit_records_of_scope on ${auditRecords} (scope, at, line_id) where scope is not null;

-- One row: which process hands lines to the sink, and until when.
create table ${auditSink} (
  one boolean primary key default true,
  run bigint not null default 0,
  locked_until timestamptz,
  constraint audit_sink_is_one check (one)
);
insert into ${schema}.audit_sink default values;

`
}

/** The application may not delete lines. This deletes old ones for it, with the rights of the owner, and none that is younger than a day. */
function expireFunction({ schema, auditRecords, now }: Dialect): string {
  return `create function ${schema}.expire_audit_records_12(older_than_ms float8, at_most integer) returns integer
language plpgsql volatile security definer set ${ownPath} as $latchkey$
declare
  kept_from constant timestamptz := ${now} - greatest(older_than_ms * interval '1 millisecond', interval '1 day');
  deleted integer;
begin
  with old as materialized (
    select r.at, r.line_id from ${auditRecords} r where r.at < kept_from order by r.at, r.line_id limit at_most
  )
  delete from ${auditRecords} r using old o where r.at = o.at and r.line_id = o.line_id;
  get diagnostics deleted = row_count;
  return deleted;
end $latchkey$;

`
}

/** For the process that has the lease, after its sink has taken the lines. Only where a sink is used does a role need it. */
function handOverFunction({ schema, auditRecords, auditSink }: Dialect): string {
  return `create function ${schema}.hand_over_audit_records_12(of_run bigint, ids bigint[], through_ms float8) returns boolean
language plpgsql volatile security definer set ${ownPath} as $latchkey$
declare
  through constant timestamptz := timestamptz 'epoch' + through_ms * interval '1 millisecond';
begin
  update ${auditSink} s set locked_until = null where s.run = of_run and s.locked_until is not null;
  if not found then return false; end if;
  delete from ${auditRecords} r where r.at <= through and r.line_id = any (ids);
  return true;
end $latchkey$;

`
}

/** As erase_audit_11, for the lines: a fingerprint is a hash of what the tenant sent. */
function eraseFunction({ schema, auditRecords, erasures }: Dialect): string {
  return `create function ${schema}.erase_audit_records_12(erased text, at_most integer) returns integer
language plpgsql volatile security definer set ${ownPath} as $latchkey$
declare
  blanked integer;
begin
  -- What no erasure was asked for stays.
  if not exists (select from ${erasures} e where e.scope = erased) then return 0; end if;
  with named as materialized (
    select r.at, r.line_id from ${auditRecords} r where r.scope = erased limit at_most
  )
  update ${auditRecords} r set scope = null, fingerprint = null from named n where r.at = n.at and r.line_id = n.line_id;
  get diagnostics blanked = row_count;
  return blanked;
end $latchkey$;

`
}

/**
 * Default privileges may have given more than adding and reading. Whoever may erase the texts of the audit may erase lines: an erasure must not
 * stop because of an upgrade.
 */
function rights({ schema, auditRecords }: Dialect): string {
  const functions = ['expire_audit_records_12(float8, integer)', 'hand_over_audit_records_12(bigint, bigint[], float8)']
  const closed = [...functions, 'erase_audit_records_12(text, integer)'].map(name => `${schema}.${name}`)
  return `revoke all on function ${closed.join(', ')} from public;
revoke update, delete, truncate on ${auditRecords} from public;
do $latchkey$
declare
  other regrole;
begin
  for other in select a.grantee::regrole from pg_catalog.pg_class c cross join lateral pg_catalog.aclexplode(c.relacl) a
    where c.oid = '${auditRecords}'::regclass and a.grantee <> c.relowner and a.grantee <> 0 group by a.grantee
  loop
    execute pg_catalog.format('revoke update, delete, truncate on ${auditRecords} from %s', other);
  end loop;
  for other in select a.grantee::regrole from pg_catalog.pg_proc p cross join lateral pg_catalog.aclexplode(p.proacl) a
    where p.oid = '${schema}.erase_audit_11(text, integer)'::regprocedure and a.grantee <> p.proowner and a.grantee <> 0
    group by a.grantee
  loop
    execute pg_catalog.format('grant execute on function ${schema}.erase_audit_records_12(text, integer) to %s', other);
  end loop;
end $latchkey$;

`
}
