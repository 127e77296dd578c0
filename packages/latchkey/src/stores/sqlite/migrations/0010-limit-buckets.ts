/** What migration 10 brings: limits over processes. Files hold exactly this text: it never changes. */
export const limitBuckets: string = `
-- From full_at_ms on it is full, and may be deleted.
CREATE TABLE latchkey_limit_buckets (
  bucket       TEXT PRIMARY KEY,
  tokens       REAL NOT NULL,
  filled_at_ms INTEGER NOT NULL,
  full_at_ms   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO latchkey_migrations VALUES (10, 'limits over processes', CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER), 5);
`
