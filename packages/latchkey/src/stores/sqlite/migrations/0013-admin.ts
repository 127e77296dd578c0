/** What migration 13 brings: what operators need beside the rows. Files hold exactly this text: it never changes. */

const auditTables = `
-- The audit is added to and never changed: what is new about an entry stands beside it. An entry with an empty id is about something else.
CREATE TABLE latchkey_audit_details (
  seq        INTEGER PRIMARY KEY,
  source     TEXT NOT NULL,
  request_id TEXT NOT NULL,
  evidence   TEXT,
  from_state INTEGER,
  to_state   INTEGER,
  fence      INTEGER,
  refused    TEXT
) STRICT;
-- A request that acts twice has acted once. Its refused attempts are entries of their own.
CREATE UNIQUE INDEX latchkey_audit_details_request ON latchkey_audit_details (request_id) WHERE refused IS NULL;
CREATE INDEX latchkey_audit_of_actor ON latchkey_audit (by, seq);

-- What operators wrote about a row, and how often they acted on it.
CREATE TABLE latchkey_notes (
  id                  TEXT PRIMARY KEY,
  scope               TEXT NOT NULL,
  owner               TEXT,
  note                TEXT,
  acts                INTEGER NOT NULL,
  look_up_asked_at_ms INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX latchkey_notes_of_scope ON latchkey_notes (scope);
CREATE INDEX latchkey_lookups_by_age ON latchkey_lookups (since_ms, id);
`

const decisionTables = `
CREATE TABLE latchkey_proposals (
  seq           INTEGER PRIMARY KEY AUTOINCREMENT,
  proposal_id   TEXT NOT NULL UNIQUE,
  id            TEXT NOT NULL,
  scope         TEXT NOT NULL,
  operation     TEXT NOT NULL,
  act           TEXT NOT NULL,
  detail        TEXT NOT NULL,
  by            TEXT NOT NULL,
  reason        TEXT NOT NULL,
  evidence      TEXT,
  fence         INTEGER NOT NULL,
  version       INTEGER NOT NULL,
  at_ms         INTEGER NOT NULL,
  expires_at_ms INTEGER NOT NULL,
  state         TEXT NOT NULL DEFAULT 'open',
  decided_by    TEXT,
  CHECK (state IN ('open', 'approved', 'rejected', 'void'))
) STRICT;
CREATE INDEX latchkey_proposals_in_order ON latchkey_proposals (state = 'open', seq);
CREATE INDEX latchkey_proposals_of_scope ON latchkey_proposals (scope);

-- The rows are fixed when it is planned.
CREATE TABLE latchkey_bulk (
  bulk_id        TEXT PRIMARY KEY,
  act            TEXT NOT NULL,
  by             TEXT NOT NULL,
  reason         TEXT NOT NULL,
  detail         TEXT NOT NULL,
  at_ms          INTEGER NOT NULL,
  valid_until_ms INTEGER NOT NULL,
  state          TEXT NOT NULL DEFAULT 'planned',
  total          INTEGER NOT NULL,
  CHECK (state IN ('planned', 'running', 'done', 'cancelled'))
) STRICT;
CREATE INDEX latchkey_bulk_by_age ON latchkey_bulk (at_ms);
CREATE TABLE latchkey_bulk_rows (
  bulk_id TEXT NOT NULL,
  at      INTEGER NOT NULL,
  target  TEXT NOT NULL,
  fence   INTEGER,
  version INTEGER,
  detail  TEXT,
  result  TEXT,
  PRIMARY KEY (bulk_id, at)
) STRICT, WITHOUT ROWID;
`

const fleetTables = `
CREATE TABLE latchkey_workers (
  process         TEXT NOT NULL,
  loop            TEXT NOT NULL,
  seen_at_ms      INTEGER NOT NULL,
  last_turn_at_ms INTEGER,
  turns           INTEGER NOT NULL,
  failures        INTEGER NOT NULL,
  last_error      TEXT,
  detail          TEXT,
  PRIMARY KEY (process, loop)
) STRICT, WITHOUT ROWID;
CREATE INDEX latchkey_workers_seen ON latchkey_workers (seen_at_ms);

CREATE TABLE latchkey_rates (
  minute_ms INTEGER NOT NULL,
  operation TEXT NOT NULL,
  metric    TEXT NOT NULL,
  count     INTEGER NOT NULL,
  PRIMARY KEY (minute_ms, operation, metric)
) STRICT, WITHOUT ROWID;
`

export const adminTables: string = `${auditTables}${decisionTables}${fleetTables}
INSERT INTO latchkey_migrations VALUES (13, 'what operators need', CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER), 5);
`
