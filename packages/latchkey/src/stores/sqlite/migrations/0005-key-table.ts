/**
 * What migration 5 brings: the table of keys with its rows in the order they came, and room for a small outcome. To the letter what files
 * have: it never changes.
 */

const columns = `id, scope, operation, state, recovery, fingerprint, fence, claim_id, attempts, crashes, locked_until_ms,
  due_at_ms, created_at_ms, completed_at_ms, expires_at_ms, parked_at_ms, description, last_error_code, tombstone_ms,
  gone_at_ms`

const anew = `
-- Anew, with rowid: identities are random, so a table in their order has each row on a page of its own, written whole to the
-- log at the grant and again at the answer. In the order they came, the rows of a batch share pages; only the index on id,
-- whose pages hold ten times as many, is written at random, and only at the grant.
CREATE TABLE latchkey_keys_anew (
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
  tombstone_ms    INTEGER,
  gone_at_ms      INTEGER,
  -- A small one of the row's own owner, packed. The others are in latchkey_outcomes, as is what was there before.
  outcome         BLOB,
  CHECK (fence >= 1),
  CHECK (state BETWEEN 0 AND 4),
  CHECK (recovery BETWEEN 0 AND 2),
  CHECK ((state = 1) = (locked_until_ms IS NOT NULL)),
  CHECK ((state = 2) = (completed_at_ms IS NOT NULL)),
  CHECK ((state IN (0, 3)) = (due_at_ms IS NOT NULL)),
  CHECK (outcome IS NULL OR state = 2)
) STRICT;
INSERT INTO latchkey_keys_anew (${columns}) SELECT ${columns} FROM latchkey_keys;
DROP TABLE latchkey_keys;
ALTER TABLE latchkey_keys_anew RENAME TO latchkey_keys;
`

const indexes = `
-- Only rows that can expire: written once, with the answer, and not at the grant. The reaper's way in.
CREATE INDEX latchkey_keys_expiry ON latchkey_keys (expires_at_ms) WHERE state IN (2, 3);
CREATE INDEX latchkey_keys_owned ON latchkey_keys (locked_until_ms) WHERE state = 1;
-- Pending, failed_retryable and unknown in one, since every write looks at every index. Not IN: with more than two members
-- SQLite builds a tree of them for each statement.
CREATE INDEX latchkey_keys_unusual ON latchkey_keys (state, id) WHERE state <> 1 AND state <> 2;
CREATE INDEX latchkey_keys_waiting ON latchkey_keys (due_at_ms)
  WHERE recovery = 2 AND state IN (0, 3) AND parked_at_ms IS NULL;
CREATE INDEX latchkey_keys_parked ON latchkey_keys (id) WHERE parked_at_ms IS NOT NULL;
`

const triggers = `
-- As before, in one trigger instead of two: every answer is looked at by each.
CREATE TRIGGER latchkey_unknown_changes AFTER UPDATE OF state ON latchkey_keys
  WHEN (NEW.state = 4) <> (OLD.state = 4)
BEGIN
  DELETE FROM latchkey_lookups WHERE id = OLD.id;
  INSERT INTO latchkey_lookups (id, fence, operation, since_ms, look_up_at_ms)
    SELECT NEW.id, NEW.fence, NEW.operation, CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER), CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER) WHERE NEW.state = 4;
END;
CREATE TRIGGER latchkey_unknown_deleted AFTER DELETE ON latchkey_keys WHEN OLD.state = 4
BEGIN
  DELETE FROM latchkey_lookups WHERE id = OLD.id;
END;
`

export const keyTable: string = anew + indexes + triggers
