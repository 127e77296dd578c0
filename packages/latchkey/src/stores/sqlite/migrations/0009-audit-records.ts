/** What migration 9 brings: a trail that outlives the rows. Files hold exactly this text: it never changes. */
export const auditRecordTables: string = `
-- AUTOINCREMENT: the number of a line that was handed over is never given again.
CREATE TABLE latchkey_audit_records (
  seq         INTEGER PRIMARY KEY AUTOINCREMENT,
  at_ms       INTEGER NOT NULL,
  id          TEXT NOT NULL,
  fence       INTEGER NOT NULL,
  status      INTEGER,
  what        TEXT NOT NULL CHECK (what IN ('completed', 'failed', 'parked', 'unknown', 'resumed', 'misuse')),
  scope       TEXT,
  operation   TEXT NOT NULL,
  fingerprint BLOB
) STRICT;
CREATE INDEX latchkey_audit_records_at ON latchkey_audit_records (at_ms);
CREATE INDEX latchkey_audit_records_of_key ON latchkey_audit_records (id);
CREATE INDEX latchkey_audit_records_of_scope ON latchkey_audit_records (scope, at_ms) WHERE scope IS NOT NULL;

-- One row: which process hands lines to the sink, and until when.
CREATE TABLE latchkey_audit_sink (
  one             INTEGER PRIMARY KEY CHECK (one = 1),
  run             INTEGER NOT NULL,
  locked_until_ms INTEGER
) STRICT;
INSERT INTO latchkey_audit_sink (one, run) VALUES (1, 0);
INSERT INTO latchkey_migrations VALUES (9, 'a trail that outlives the rows', CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER), 5);
`
