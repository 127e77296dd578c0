/**
 * What migration 4 brings: evidence under names, look-ups, messages, ledgers, deadlines, tombstones. To the letter what files have: it never
 * changes.
 */

const columns = `
-- How long a completed row is known to be gone after its expiry, and when the reaper took all the rest of it.
ALTER TABLE latchkey_keys ADD COLUMN tombstone_ms INTEGER;
ALTER TABLE latchkey_keys ADD COLUMN gone_at_ms INTEGER;

ALTER TABLE latchkey_inputs ADD COLUMN deadline_at_ms INTEGER;

-- The key of the latest intent, and the epoch it was made of: the step's own epoch rises before the next key is known.
ALTER TABLE latchkey_steps ADD COLUMN downstream_key TEXT;
ALTER TABLE latchkey_steps ADD COLUMN downstream_epoch INTEGER;
CREATE INDEX latchkey_steps_by_key ON latchkey_steps (downstream_key) WHERE downstream_key IS NOT NULL;
`

const evidenceTable = `
-- Anew, because only AUTOINCREMENT never gives the number of a deleted piece of evidence to another one.
CREATE TABLE latchkey_evidence_anew (
  seq             INTEGER PRIMARY KEY AUTOINCREMENT,
  id              TEXT NOT NULL,
  source          TEXT NOT NULL,
  verdict         TEXT NOT NULL,
  applied         INTEGER NOT NULL,
  at_ms           INTEGER NOT NULL,
  fence           INTEGER,
  claim_id        TEXT,
  status          INTEGER,
  version         INTEGER,
  headers         TEXT,
  body            BLOB,
  ref             TEXT,
  effect_position INTEGER,
  effect_name     TEXT,
  effect_epoch    INTEGER,
  result          TEXT,
  CHECK ((effect_position IS NULL) = (effect_name IS NULL) AND (effect_position IS NULL) = (effect_epoch IS NULL)),
  CHECK (result IS NULL OR status IS NULL)
) STRICT;
INSERT INTO latchkey_evidence_anew (seq, id, source, verdict, applied, at_ms, fence, claim_id, status, version, headers, body)
  SELECT seq, id, source, verdict, applied, at_ms, fence, claim_id, status, version, headers, body FROM latchkey_evidence;
DROP TABLE latchkey_evidence;
ALTER TABLE latchkey_evidence_anew RENAME TO latchkey_evidence;
CREATE INDEX latchkey_evidence_of ON latchkey_evidence (id, seq);
-- A late owner that repeats itself after a lost reply has said one thing.
CREATE UNIQUE INDEX latchkey_evidence_once ON latchkey_evidence (id, claim_id, verdict) WHERE claim_id IS NOT NULL;
-- So has everybody who says it again under its name.
CREATE UNIQUE INDEX latchkey_evidence_named ON latchkey_evidence (id, source, ref) WHERE ref IS NOT NULL;
`

const lookupsTable = `
-- One row for each unknown key. look_up_at_ms is null while the key is parked; look 0: nobody looked yet, and how long after
-- since_ms the first one does is the asker's to say.
CREATE TABLE latchkey_lookups (
  id              TEXT PRIMARY KEY,
  fence           INTEGER NOT NULL,
  operation       TEXT NOT NULL,
  since_ms        INTEGER NOT NULL,
  look            INTEGER NOT NULL DEFAULT 0,
  tries           INTEGER NOT NULL DEFAULT 0,
  look_up_at_ms   INTEGER,
  looked_until_ms INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX latchkey_lookups_due ON latchkey_lookups (operation, look_up_at_ms, since_ms);

-- Triggers, so that it is there exactly while the key is unknown, whoever writes: also a process of an older release.
CREATE TRIGGER latchkey_unknown_begins AFTER UPDATE OF state ON latchkey_keys WHEN NEW.state = 4 AND OLD.state <> 4
BEGIN
  INSERT OR REPLACE INTO latchkey_lookups (id, fence, operation, since_ms, look_up_at_ms)
  VALUES (NEW.id, NEW.fence, NEW.operation, CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER), CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER));
END;
CREATE TRIGGER latchkey_unknown_ends AFTER UPDATE OF state ON latchkey_keys WHEN OLD.state = 4 AND NEW.state <> 4
BEGIN
  DELETE FROM latchkey_lookups WHERE id = OLD.id;
END;
CREATE TRIGGER latchkey_unknown_deleted AFTER DELETE ON latchkey_keys WHEN OLD.state = 4
BEGIN
  DELETE FROM latchkey_lookups WHERE id = OLD.id;
END;
-- Since when they are unknown was not written down: from now on, so that no quarantine is taken for over.
INSERT INTO latchkey_lookups (id, fence, operation, since_ms, look_up_at_ms)
  SELECT id, fence, operation, CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER), CASE WHEN parked_at_ms IS NULL THEN CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER) END FROM latchkey_keys WHERE state = 4;
`

const apartFromRows = `
-- Messages by the name their sender gave them, apart from the rows they speak of: they are remembered beyond them.
-- signed_at_ms is of the sender's clock.
CREATE TABLE latchkey_received (
  source       TEXT NOT NULL,
  ref          TEXT NOT NULL,
  at_ms        INTEGER NOT NULL,
  signed_at_ms INTEGER NOT NULL,
  PRIMARY KEY (source, ref)
) STRICT, WITHOUT ROWID;
CREATE INDEX latchkey_received_at ON latchkey_received (at_ms);

-- held_until_ms: a run is under way. The counts are of the last run that came to its end.
CREATE TABLE latchkey_ledger_runs (
  name           TEXT PRIMARY KEY,
  run            INTEGER NOT NULL,
  began_at_ms    INTEGER NOT NULL,
  held_until_ms  INTEGER,
  retry_at_ms    INTEGER,
  finished_at_ms INTEGER,
  compared       INTEGER,
  missing        INTEGER,
  extra          INTEGER,
  different      INTEGER,
  settled        INTEGER
) STRICT, WITHOUT ROWID;
`

export const reconciliationTables: string = columns + evidenceTable + lookupsTable + apartFromRows
