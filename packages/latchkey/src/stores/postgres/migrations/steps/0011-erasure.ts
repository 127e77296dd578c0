/** The eleventh migration: erasing a tenant. To the letter what databases have: it never changes. `schema`: quoted. */

/**
 * The scope stands in new messages and in new entries of the audit; entries from before are found through their row. `erase_audit_11` runs with the
 * rights of the owner: the role of the application may call it, and needs no right to change the audit. It blanks what people wrote
 * and keeps who acted and when, and logs the hash of the scope. Nobody may call it but whom the owner allows.
 */
export function erasureTables(schema: string): string {
  return `alter table ${schema}.outbox add column scope text collate "C";
alter table ${schema}.audit add column scope text collate "C",
  drop constraint audit_act_is_known,
  add constraint audit_act_is_known check (act in ('settle', 'forget', 'unpark', 'erase')) not valid;
create index outbox_of_scope on ${schema}.outbox (scope) where scope is not null;
create index audit_of_scope on ${schema}.audit (scope) where scope is not null;

-- scope is null when nothing of it is left.
create table ${schema}.erasures (
  scope_hash bytea primary key,
  scope text collate "C",
  marked_at timestamptz not null,
  ended_at timestamptz
);

create function ${schema}.erase_audit_11(erased text, at_most integer) returns integer
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $latchkey$
declare
  hashed constant bytea := pg_catalog.sha256(pg_catalog.convert_to(erased, 'UTF8'));
  blanked integer;
  more integer;
begin
  -- What no erasure was asked for stays.
  if not exists (select from ${schema}.erasures e where e.scope = erased) then return 0; end if;
  with texts as materialized (
    select a.audit_id from ${schema}.audit a where a.scope = erased and a.act <> 'erase' limit at_most
  ), blank as (
    update ${schema}.audit a set reason = 'erased', detail = '', scope = null
    where a.audit_id = any(array(select t.audit_id from texts t)) returning 1
  )
  select pg_catalog.count(*) into blanked from blank;
  with texts as materialized (
    select a.audit_id from ${schema}.audit a join ${schema}.keys k on k.id = a.key_id
    where (pg_catalog.hashtext(k.scope) & 255) = (pg_catalog.hashtext(erased collate "C") & 255) and k.scope = erased
      and (a.reason <> 'erased' or a.detail <> '') and a.act <> 'erase' limit at_most
  ), blank as (
    update ${schema}.audit a set reason = 'erased', detail = '', scope = null
    where a.audit_id = any(array(select t.audit_id from texts t)) returning 1
  )
  select pg_catalog.count(*) into more from blank;
  blanked := blanked + more;
  with texts as materialized (
    select a.audit_id from ${schema}.outbox_audit a join ${schema}.outbox o on o.id = a.message_id
    where o.scope = erased and a.reason <> 'erased' limit at_most
  ), blank as (
    update ${schema}.outbox_audit a set reason = 'erased'
    where a.audit_id = any(array(select t.audit_id from texts t)) returning 1
  )
  select pg_catalog.count(*) into more from blank;
  blanked := blanked + more;
  if blanked > 0 then
    insert into ${schema}.audit (key_id, act, actor, reason, detail, at)
    values (pg_catalog.encode(pg_catalog.substr(hashed, 1, 16), 'hex')::uuid, 'erase', session_user,
      'erased', pg_catalog.encode(hashed, 'hex') || ' ' || blanked::text, pg_catalog.clock_timestamp());
  end if;
  return blanked;
end $latchkey$;
revoke all on function ${schema}.erase_audit_11(text, integer) from public;

`
}
