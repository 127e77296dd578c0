/** What migration 11 brings: messages that consumers have parked. Files hold exactly this text: it never changes. */
export const inboxTables: string = `
-- due_at_ms is null while a message waits for an operator. AUTOINCREMENT: pages continue after a message that is gone.
CREATE TABLE latchkey_inbox_parked (
  seq                INTEGER PRIMARY KEY AUTOINCREMENT,
  id                 TEXT NOT NULL UNIQUE,
  consumer           TEXT NOT NULL,
  operation          TEXT NOT NULL,
  source             TEXT NOT NULL,
  message_id         TEXT,
  type               TEXT,
  content_type       TEXT,
  position           TEXT,
  cause              TEXT NOT NULL,
  key_id             TEXT,
  attempts           INTEGER NOT NULL,
  times              INTEGER NOT NULL DEFAULT 1,
  is_json            INTEGER NOT NULL,
  headers            TEXT NOT NULL,
  payload            BLOB NOT NULL,
  first_parked_at_ms INTEGER NOT NULL,
  parked_at_ms       INTEGER NOT NULL,
  redrive_as         TEXT,
  due_at_ms          INTEGER,
  run                INTEGER NOT NULL DEFAULT 0,
  locked_until_ms    INTEGER
) STRICT;
CREATE INDEX latchkey_inbox_parked_to_take ON latchkey_inbox_parked (consumer, operation, seq)
  WHERE due_at_ms IS NOT NULL OR cause = 'unknown';

-- It outlives the messages.
CREATE TABLE latchkey_inbox_audit (
  seq    INTEGER PRIMARY KEY,
  id     TEXT NOT NULL,
  act    TEXT NOT NULL,
  by     TEXT NOT NULL,
  reason TEXT NOT NULL,
  detail TEXT NOT NULL,
  at_ms  INTEGER NOT NULL
) STRICT;
CREATE INDEX latchkey_inbox_audit_of ON latchkey_inbox_audit (id, seq);
INSERT INTO latchkey_migrations VALUES (11, 'messages that consumers have parked', CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER), 5);
`
