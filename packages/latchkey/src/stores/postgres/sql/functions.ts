import type { Dialect } from './names.ts'

/**
 * The database functions that this release calls. Each carries the number of the migration that created it, and is never changed
 * or replaced: a process of another release may be calling it. A new text is a new migration and a new name here.
 */
export interface FunctionNames {
  readonly oneRow: string
  readonly claimMany: string
  readonly completeMany: string
  readonly heartbeatMany: string
  readonly readMany: string
  readonly reserve: string
  readonly recordFresh: string
  readonly recordLast: string
  readonly outboxNext: string
  readonly outboxDelivered: string
}

/** `schema`: quoted. */
export function functionNames(schema: string): FunctionNames {
  return {
    oneRow: `${schema}.one_row_9`,
    claimMany: `${schema}.claim_many_9`,
    completeMany: `${schema}.complete_many_9`,
    heartbeatMany: `${schema}.heartbeat_many_9`,
    readMany: `${schema}.read_many_9`,
    reserve: `${schema}.reserve_9`,
    recordFresh: `${schema}.record_fresh_9`,
    recordLast: `${schema}.record_last_9`,
    outboxNext: `${schema}.outbox_next_9`,
    outboxDelivered: `${schema}.outbox_delivered_9`,
  }
}

/** Those that also write a line of the trail. */
export function recordingFunctionNames(
  schema: string,
): Pick<FunctionNames, 'completeMany' | 'recordFresh' | 'recordLast'> {
  return {
    completeMany: `${schema}.complete_many_12`,
    recordFresh: `${schema}.record_fresh_12`,
    recordLast: `${schema}.record_last_12`,
  }
}

/**
 * Every function sets this path, so that names which its text does not qualify, operators above all, are the server's own. Without it
 * a role that may create objects in a schema of the caller's path could offer a better match, which would run with the caller's rights.
 * `pg_temp` is named last: left out, it would be searched first.
 */
export const ownPath = 'search_path = pg_catalog, pg_temp'

/**
 * The plan is pinned: with these off only the primary key is left, both on a new table without statistics and on a large one.
 */
const byPrimaryKey = `language plpgsql set ${ownPath}
  set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
  set plan_cache_mode = force_generic_plan set jit = off`

/** A batch waits for no lock for long: a row that is locked is sent alone, by the statement for one row. */
export const batchSettings: string = `${byPrimaryKey} set lock_timeout = '50ms'`

/** Always true, and declared expensive: PostgreSQL evaluates it last, so only for the row that all other conditions let through. */
export function oneRowFunction(sql: Dialect): string {
  return `create function ${sql.functions.oneRow}() returns boolean language plpgsql volatile cost 100000
set ${ownPath} as $latchkey$
begin
  return true;
end $latchkey$;

`
}
