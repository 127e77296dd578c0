/** The tenth migration: an operator lists one tenant's rows. To the letter what databases have: it never changes. `schema`: quoted. */

/**
 * A bucket and not the scope itself: many rows share an entry, whatever the scopes are, so that a row adds seven to
 * ten bytes. A tree of scopes takes up to 37 where each has one row.
 */
export function scopeIndex(schema: string): string {
  return `create index keys_scope on ${schema}.keys ((pg_catalog.hashtext(scope) & 255));

`
}
