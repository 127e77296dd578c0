/** What migration 2 brings. Files hold exactly this text: it never changes. */
export const stepTables: string = `
-- What phased work was asked to do. With rowid: up to 64 KiB of JSON.
CREATE TABLE latchkey_inputs (
  id      TEXT PRIMARY KEY,
  version INTEGER NOT NULL,
  input   TEXT NOT NULL
) STRICT;

-- A step is written by the owner of the key's row, in a transaction that has checked fence and claim_id there.
CREATE TABLE latchkey_steps (
  id              TEXT NOT NULL,
  position        INTEGER NOT NULL,
  name            TEXT NOT NULL,
  kind            INTEGER NOT NULL,
  state           INTEGER NOT NULL,
  epoch           INTEGER NOT NULL,
  opened_at_ms    INTEGER,
  repeat_until_ms INTEGER,
  result          TEXT,
  PRIMARY KEY (id, position),
  CHECK (position >= 0),
  CHECK (kind BETWEEN 0 AND 1),
  CHECK (state BETWEEN 0 AND 2),
  CHECK (kind <> 0 OR state = 2),
  CHECK ((kind = 1) = (opened_at_ms IS NOT NULL)),
  CHECK (state = 2 OR result IS NULL)
) STRICT;

-- Only phased rows that wait for a retry or a worker, and only parked rows: the resumer's and the operator's way in.
CREATE INDEX latchkey_keys_waiting ON latchkey_keys (due_at_ms)
  WHERE recovery = 2 AND state IN (0, 3) AND parked_at_ms IS NULL;
CREATE INDEX latchkey_keys_parked ON latchkey_keys (id) WHERE parked_at_ms IS NOT NULL;

INSERT INTO latchkey_migrations VALUES (2, 'inputs and steps of phased work', CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER));
`
