/** The tables. STRICT, so that a column holds what it says; text compares bytewise (BINARY is SQLite's default). */
import {
  type AppliedStep,
  latestOf,
  type Migration,
  migrationsAfter,
  stepsFault,
  type StepsFault,
} from '../../shared/migrations.ts'
import type { Handle } from '../connection/handle.ts'
import { keyTable } from './0005-key-table.ts'
import { outboxTables } from './0003-outbox.ts'
import { reconciliationTables } from './0004-reconciliation.ts'

/** Milliseconds since 1970 on the store's own clock, one instant per statement. Rounded: the product is a float. */
export const nowMsSql: string = `CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER)`

/**
 * The SQL text of every step, for those who run migrations with a tool of their own. Each runs in one transaction and
 * records itself. The file must be in WAL mode; the store sees to that when it opens it.
 */
export const sqliteMigrations: readonly Migration[] = [
  {
    version: 1,
    name: 'keys, outcomes, evidence, audit',
    sql: `
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
`,
  },
  {
    version: 2,
    name: 'inputs and steps of phased work',
    sql: `
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
`,
  },
  {
    version: 3,
    name: 'outbox',
    sql: `${outboxTables}
INSERT INTO latchkey_migrations VALUES (3, 'outbox', CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER));
`,
  },
  {
    version: 4,
    name: 'reconciliation',
    sql: `${reconciliationTables}
INSERT INTO latchkey_migrations VALUES (4, 'reconciliation', CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER));
`,
  },
  {
    version: 5,
    name: 'keys in order of arrival, with small outcomes',
    sql: `${keyTable}
INSERT INTO latchkey_migrations VALUES (5, 'keys in order of arrival, with small outcomes', CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER));
`,
  },
  {
    version: 6,
    name: 'who may share the file',
    sql: `
-- From here on a step says which processes may share the file after it: those that know at least this step.
ALTER TABLE latchkey_migrations ADD COLUMN shared_from INTEGER;
INSERT INTO latchkey_migrations VALUES (6, 'who may share the file', CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER), 5);
`,
  },
]

/** What is wrong with the tables of a file; undefined: nothing. */
export type SchemaFault = StepsFault | { readonly kind: 'absent' }

export function schemaFault(handle: Handle): SchemaFault | undefined {
  const names = handle.query(`SELECT name FROM sqlite_schema WHERE name IN ('latchkey_migrations', 'latchkey_keys')`)
  if (names.length === 0) return { kind: 'absent' }
  return stepsFault(sqliteMigrations, appliedSteps(handle))
}

const stepColumns = ['version', 'name', 'applied_at_ms']

/** Empty also where the table is somebody else's. */
function appliedSteps(handle: Handle): readonly AppliedStep[] {
  const columns = handle
    .query(`SELECT name FROM pragma_table_info('latchkey_migrations')`)
    .map(({ name }) => String(name))
  if (!stepColumns.every(name => columns.includes(name))) return []
  // Files from before step 6 have no such column.
  const sharedFrom = columns.includes('shared_from') ? 'shared_from' : 'NULL'
  const rows = handle.query(
    `SELECT version, name, ${sharedFrom} AS shared_from FROM latchkey_migrations ORDER BY version`,
  )
  return rows.map(({ version, name, shared_from }) => ({
    version: Number(version),
    name: String(name),
    sharedFrom: shared_from === null ? undefined : Number(shared_from),
  }))
}

/** Inside one write transaction: of several processes at once the first does it, the others then find it done. */
export function applyMigrations(handle: Handle): void {
  for (const migration of migrationsAfter(sqliteMigrations, latestOf(appliedSteps(handle)))) handle.exec(migration.sql)
}
