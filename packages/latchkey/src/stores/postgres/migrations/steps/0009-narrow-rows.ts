/** The ninth migration: narrower rows. To the letter what databases have: it never changes. `schema`: quoted. */

/**
 * Rewrites the table of keys. A first grant has no time of its own any more, so processes that look for dead leases by the column alone would
 * miss it: those that know only the steps before are refused, and the functions that only they call are dropped.
 */
export function narrowRows(schema: string): string {
  const functions = [...unversioned, ...unversioned.map(name => `${name}_8`)].map(name => `${schema}.${name}`)
  return `drop function ${functions.join(', ')};
drop index ${schema}.keys_granted_at;
alter table ${schema}.keys
  alter column granted_at drop not null,
  alter column granted_at type timestamptz using nullif(granted_at, created_at),
  alter column attempts type smallint using least(attempts, 32767)::smallint,
  alter column crashes type smallint using least(crashes, 32767)::smallint;
create index keys_granted_at on ${schema}.keys using brin (coalesce(granted_at, created_at))
  with (pages_per_range = 32, autosummarize = on);

`
}

/** Of steps 6 and 7. Step 8 has the same with its number. */
const unversioned = [
  ...[
    'one_row',
    'claim_many',
    'complete_many',
    'heartbeat_many',
    'read_many',
    'reserve',
    'record_fresh',
    'record_last',
  ],
  ...['outbox_next', 'outbox_delivered'],
]
