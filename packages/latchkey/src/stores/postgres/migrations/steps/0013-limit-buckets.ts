/** The thirteenth migration: limits over processes. To the letter what databases have: it never changes. `schema`: quoted. */

/**
 * Not logged: a lease then waits for no disk. After a crash of the server, and on a standby that becomes the primary, the table is empty, and every
 * bucket full. `granted`: by the last lease, because an upsert returns only what it has written.
 */
export function limitBuckets(schema: string): string {
  return `create unlogged table ${schema}.limit_buckets (
  bucket uuid primary key,
  tokens float8 not null,
  granted integer not null,
  filled_at timestamptz not null,
  full_at timestamptz not null
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);

`
}
