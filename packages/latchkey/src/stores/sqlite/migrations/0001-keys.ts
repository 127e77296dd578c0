/** What migration 1 brings. Files hold exactly this text: it never changes. */
export const keyTables: string = `
-- One narrow row per identity; read on every request.
CREATE TABLE latchkey_keys (
  id              TEXT PRIMARY KEY,
  scope           TEXT NOT NULL,
  operation       TEXT NOT NULL,
  state           INTEGER NOT NULL,
  recovery        INTEGER NOT NULL,
  fingerprint     BLOB NOT NULL,
  fence           INTEGER NOT NULL,
  claim_id        TEXT NOT NULL,
  attempts        INTEGER NOT NULL,
  crashes         INTEGER NOT NULL,
  locked_until_ms INTEGER,
  due_at_ms       INTEGER,
  created_at_ms   INTEGER NOT NULL,
  completed_at_ms INTEGER,
  expires_at_ms   INTEGER NOT NULL,
  parked_at_ms    INTEGER,
  description     TEXT,
  last_error_code TEXT,
  CHECK (fence >= 1),
  CHECK (state BETWEEN 0 AND 4),
  CHECK (recovery BETWEEN 0 AND 2),
  CHECK ((state = 1) = (locked_until_ms IS NOT NULL)),
  CHECK ((state = 2) = (completed_at_ms IS NOT NULL)),
  CHECK ((state IN (0, 3)) = (due_at_ms IS NOT NULL))
) STRICT, WITHOUT ROWID;

-- Written once at the grant; the reaper's way in.
CREATE INDEX latchkey_keys_expiry ON latchkey_keys (expires_at_ms);
-- Only rows that are owned now: the sweeper's way in, a few entries however large the table is.
CREATE INDEX latchkey_keys_owned ON latchkey_keys (locked_until_ms) WHERE state = 1;
-- Only rows out of the ordinary: pending, failed_retryable, unknown. An operator lists them without a scan.
CREATE INDEX latchkey_keys_pending ON latchkey_keys (id) WHERE state = 0;
CREATE INDEX latchkey_keys_failed ON latchkey_keys (id) WHERE state = 3;
CREATE INDEX latchkey_keys_unknown ON latchkey_keys (id) WHERE state = 4;

-- The answer belongs to the grant with the same fence; one of an older fence is no longer anybody's. With rowid: a body of
-- a megabyte has no place in the pages of a key tree.
CREATE TABLE latchkey_outcomes (
  id           TEXT PRIMARY KEY,
  fence        INTEGER NOT NULL,
  by_operator  INTEGER NOT NULL,
  status       INTEGER NOT NULL,
  version      INTEGER NOT NULL,
  headers      TEXT NOT NULL,
  body         BLOB
) STRICT;

-- Also of refused late owners, with their whole answer: it may be the only trace of something that happened.
CREATE TABLE latchkey_evidence (
  seq      INTEGER PRIMARY KEY,
  id       TEXT NOT NULL,
  source   TEXT NOT NULL,
  verdict  TEXT NOT NULL,
  applied  INTEGER NOT NULL,
  at_ms    INTEGER NOT NULL,
  fence    INTEGER,
  claim_id TEXT,
  status   INTEGER,
  version  INTEGER,
  headers  TEXT,
  body     BLOB
) STRICT;
CREATE INDEX latchkey_evidence_of ON latchkey_evidence (id, seq);
-- A late owner that repeats itself after a lost reply has said one thing.
CREATE UNIQUE INDEX latchkey_evidence_once ON latchkey_evidence (id, claim_id, verdict) WHERE claim_id IS NOT NULL;

-- Kept for good, whatever becomes of the row.
CREATE TABLE latchkey_audit (
  seq    INTEGER PRIMARY KEY,
  id     TEXT NOT NULL,
  act    TEXT NOT NULL,
  by     TEXT NOT NULL,
  reason TEXT NOT NULL,
  detail TEXT NOT NULL,
  at_ms  INTEGER NOT NULL
) STRICT;
CREATE INDEX latchkey_audit_of ON latchkey_audit (id, seq);

CREATE TABLE latchkey_migrations (
  version       INTEGER PRIMARY KEY,
  name          TEXT NOT NULL,
  applied_at_ms INTEGER NOT NULL
) STRICT;
INSERT INTO latchkey_migrations VALUES (1, 'keys, outcomes, evidence, audit', CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER));
`
