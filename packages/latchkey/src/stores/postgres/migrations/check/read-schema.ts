/** What there is in the database for us, and what of it this role may do: all in one round trip, whatever is missing. */
import { LatchkeyError } from '../../../../ports/errors.ts'
import type { AppliedStep } from '../../../shared/migrations.ts'
import type { PgQueryable, PgResult } from '../../driver.ts'
import { ownPath } from '../../sql/functions.ts'
import type { Dialect } from '../../sql/names.ts'

export type Right = 'select' | 'insert' | 'update' | 'delete'

export interface SchemaState {
  readonly serverVersion: number
  readonly role: string
  readonly database: string
  /** The server replicates another one. */
  readonly standby: boolean
  readonly readOnly: boolean
  readonly mayCreateSchema: boolean
  /** Absent: there is no such schema. */
  readonly schema: { readonly usage: boolean; readonly create: boolean } | null
  /** By name, what the role may do with each. */
  readonly tables: Readonly<Record<string, readonly Right[]>>
  /** By name, whether the role may call it. */
  readonly functions: Readonly<Record<string, boolean>>
  /** Of the table `migrations`, its columns with their types. */
  readonly columns: Readonly<Record<string, string>>
  /** Also empty where the role may not read them, or the table is not Latchkey's. */
  readonly steps: readonly AppliedStep[]
}

export async function readSchema(queryable: PgQueryable, sql: Dialect): Promise<SchemaState> {
  const result: PgResult | readonly PgResult[] = await queryable.query(readText(sql))
  // A message of several statements has several results.
  const last: PgResult | undefined = Array.isArray(result) ? result.at(-1) : (result as PgResult)
  const row = last?.rows[0]
  if (typeof row === 'object' && row !== null && 'found' in row && typeof row.found === 'string') {
    // Written as JSON below, with these names.
    return JSON.parse(row.found) as SchemaState
  }
  throw new LatchkeyError('invariant', 'reading the schema returned no row')
}

/** The columns of Latchkey's own table `migrations`. */
export const stepColumns = { version: 'integer', name: 'text', applied_at: 'timestamp with time zone' } as const

/**
 * A block, because only a block can read the steps where their table may be missing. It reads the catalogs, which every role may read: a
 * name in a schema that the role may not use would be an error. The result leaves as a setting that ends with the message's transaction;
 * nothing is written.
 */
function readText({ schema }: Dialect): string {
  const name = schema.slice(1, -1)
  return `do $latchkey$
  declare
    space oid;
    steps_table oid;
    columns jsonb;
    steps jsonb;
  begin
    set local ${ownPath};
    select n.oid into space from pg_namespace n where n.nspname = '${name}';
    select c.oid into steps_table from pg_class c where c.relnamespace = space and c.relname = 'migrations' and c.relkind in ('r', 'p');
    select jsonb_object_agg(a.attname, format_type(a.atttypid, null)) into columns from pg_attribute a
      where a.attrelid = steps_table and a.attnum > 0 and not a.attisdropped;
    if columns @> '${JSON.stringify(stepColumns)}' and has_schema_privilege(space, 'usage') and has_table_privilege(steps_table, 'select') then
      execute 'select jsonb_agg(jsonb_build_object(''version'', m.version, ''name'', m.name, ''sharedFrom'', to_jsonb(m) -> ''shared_from'')
        order by m.version) from ${schema}.migrations m' into steps;
    end if;
    perform set_config('latchkey.found', jsonb_build_object(
      'serverVersion', current_setting('server_version_num')::int,
      'role', current_user,
      'database', current_database(),
      'standby', pg_is_in_recovery(),
      'readOnly', current_setting('transaction_read_only')::bool,
      'mayCreateSchema', has_database_privilege(current_database(), 'create'),
      'schema', case when space is not null then jsonb_build_object(
        'usage', has_schema_privilege(space, 'usage'), 'create', has_schema_privilege(space, 'create')) end,
      'tables', coalesce((select jsonb_object_agg(c.relname, array(
          select r from unnest('{select,insert,update,delete}'::text[]) r
          where case when r = 'delete' then has_table_privilege(c.oid, r) else has_any_column_privilege(c.oid, r) end))
        from pg_class c where c.relnamespace = space and c.relkind in ('r', 'p')), '{}'),
      'functions', coalesce((select jsonb_object_agg(p.proname, has_function_privilege(p.oid, 'execute'))
        from pg_proc p where p.pronamespace = space), '{}'),
      'columns', coalesce(columns, '{}'),
      'steps', coalesce(steps, '[]'))::text, true);
  end $latchkey$;
  select pg_catalog.current_setting('latchkey.found') as found`
}
