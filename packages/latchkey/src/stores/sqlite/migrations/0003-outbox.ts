/** The tables of the outbox. There is one writer, so the rowid is the order of the commits, and AUTOINCREMENT never reuses one. */

/** As on PostgreSQL. Part of the schema: `append` hashes by it. */
export const laneCount = 8

/** What migration 3 brings. To the letter what files have: it never changes. */
export const outboxTables: string = `
CREATE TABLE latchkey_outbox (
  id            INTEGER PRIMARY KEY AUTOINCREMENT,
  lane          INTEGER NOT NULL CHECK (lane BETWEEN 0 AND 7),
  aggregate     TEXT,
  dedup_id      TEXT NOT NULL,
  topic         TEXT NOT NULL,
  payload       BLOB NOT NULL,
  headers       TEXT NOT NULL,
  created_at_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX latchkey_outbox_in_order ON latchkey_outbox (lane, id);

CREATE TABLE latchkey_outbox_lanes (
  lane            INTEGER PRIMARY KEY,
  fence           INTEGER NOT NULL DEFAULT 0,
  lease_id        TEXT,
  locked_until_ms INTEGER,
  leased_at_ms    INTEGER,
  cursor          INTEGER NOT NULL DEFAULT 0,
  crashes         INTEGER NOT NULL DEFAULT 0,
  probing         INTEGER NOT NULL DEFAULT 0,
  CHECK ((lease_id IS NULL) = (locked_until_ms IS NULL))
) STRICT;
INSERT INTO latchkey_outbox_lanes (lane) VALUES (0), (1), (2), (3), (4), (5), (6), (7);

-- due_at_ms is null while the message stands behind another one of its aggregate.
CREATE TABLE latchkey_outbox_parked (
  id           INTEGER PRIMARY KEY,
  lane         INTEGER NOT NULL,
  aggregate    TEXT,
  blocks       INTEGER NOT NULL,
  suspect      INTEGER NOT NULL DEFAULT 0,
  attempts     INTEGER NOT NULL DEFAULT 0,
  crashes      INTEGER NOT NULL DEFAULT 0,
  due_at_ms    INTEGER,
  parked_at_ms INTEGER,
  cause        TEXT,
  history      TEXT NOT NULL DEFAULT '[]',
  CHECK (parked_at_ms IS NULL OR cause IS NOT NULL),
  CHECK (aggregate IS NOT NULL OR blocks = 0)
) STRICT;
CREATE INDEX latchkey_outbox_parked_of_aggregate ON latchkey_outbox_parked (lane, aggregate, id);
CREATE INDEX latchkey_outbox_parked_due ON latchkey_outbox_parked (lane, due_at_ms) WHERE parked_at_ms IS NULL;
CREATE INDEX latchkey_outbox_parked_for_people ON latchkey_outbox_parked (id) WHERE parked_at_ms IS NOT NULL;

-- Only of messages whose downstream said what it calls them.
CREATE TABLE latchkey_outbox_delivered (
  id            INTEGER PRIMARY KEY,
  downstream_id TEXT NOT NULL,
  at_ms         INTEGER NOT NULL
) STRICT;

CREATE TABLE latchkey_outbox_audit (
  seq    INTEGER PRIMARY KEY,
  id     INTEGER NOT NULL,
  act    TEXT NOT NULL,
  by     TEXT NOT NULL,
  reason TEXT NOT NULL,
  at_ms  INTEGER NOT NULL
) STRICT;
CREATE INDEX latchkey_outbox_audit_of ON latchkey_outbox_audit (id, seq);
`
