/** A SQLite file of its own in a temporary directory, and the store conformance harness over it. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Damage, SpoilableHarness } from '@latchkey/conformance'
import type { SqliteDatabase } from '../../src/stores/sqlite/driver.ts'
import { handleOf } from '../../src/stores/sqlite/connection/handle.ts'
import { sqliteStore, type SqliteStore, type SqliteStoreOptions, type SqliteTx } from '../../src/stores/sqlite/index.ts'

export type Open = (path: string) => SqliteDatabase

export interface SqliteHarness extends SpoilableHarness {
  readonly path: string
  open(options?: Partial<SqliteStoreOptions>): Promise<SqliteStore>
}

/** Every instant that the store keeps, moved back: as good as its clock moved on. */
const advanceSql = `
  UPDATE latchkey_keys SET locked_until_ms = locked_until_ms - ?1, due_at_ms = due_at_ms - ?1,
    created_at_ms = created_at_ms - ?1, completed_at_ms = completed_at_ms - ?1, expires_at_ms = expires_at_ms - ?1,
    parked_at_ms = parked_at_ms - ?1, gone_at_ms = gone_at_ms - ?1`
const advanceSteps = `
  UPDATE latchkey_steps SET opened_at_ms = opened_at_ms - ?1, repeat_until_ms = repeat_until_ms - ?1`
const advanceNotes = ['evidence', 'audit', 'received', 'audit_records', 'inbox_audit', 'key_references'].map(
  table => `UPDATE latchkey_${table} SET at_ms = at_ms - ?1`,
)
const advanceQueues = [
  'UPDATE latchkey_audit_sink SET locked_until_ms = locked_until_ms - ?1',
  'UPDATE latchkey_inputs SET deadline_at_ms = deadline_at_ms - ?1',
  `UPDATE latchkey_lookups SET since_ms = since_ms - ?1, look_up_at_ms = look_up_at_ms - ?1,
     looked_until_ms = looked_until_ms - ?1`,
  `UPDATE latchkey_ledger_runs SET began_at_ms = began_at_ms - ?1, held_until_ms = held_until_ms - ?1,
     retry_at_ms = retry_at_ms - ?1, finished_at_ms = finished_at_ms - ?1`,
  `UPDATE latchkey_inbox_parked SET first_parked_at_ms = first_parked_at_ms - ?1, parked_at_ms = parked_at_ms - ?1,
     due_at_ms = due_at_ms - ?1, locked_until_ms = locked_until_ms - ?1`,
  'UPDATE latchkey_notes SET look_up_asked_at_ms = look_up_asked_at_ms - ?1',
  'UPDATE latchkey_proposals SET at_ms = at_ms - ?1, expires_at_ms = expires_at_ms - ?1',
  'UPDATE latchkey_bulk SET at_ms = at_ms - ?1, valid_until_ms = valid_until_ms - ?1',
  'UPDATE latchkey_workers SET seen_at_ms = seen_at_ms - ?1, last_turn_at_ms = last_turn_at_ms - ?1',
  'UPDATE latchkey_rates SET minute_ms = minute_ms - ?1',
  'UPDATE latchkey_limit_buckets SET filled_at_ms = filled_at_ms - ?1, full_at_ms = full_at_ms - ?1',
]

const spoilKey = (set: string) => `UPDATE latchkey_keys SET ${set} WHERE id = ?1`
const spoilSql: Readonly<Record<Damage, readonly string[]>> = {
  state: [spoilKey('state = 7')],
  recovery: [spoilKey('recovery = 9')],
  'outcome-format': [spoilKey(`outcome = CAST(x'f0' || substr(outcome, 2) AS BLOB)`)],
  'outcome-cut': [spoilKey('outcome = substr(outcome, 1, 2)')],
  'outcome-headers': [
    spoilKey('outcome = NULL'),
    `INSERT INTO latchkey_outcomes (id, fence, by_operator, status, version, headers, body)
     SELECT id, fence, 0, 201, 1, 'no list', NULL FROM latchkey_keys WHERE id = ?1`,
  ],
  'outcome-missing': [spoilKey('outcome = NULL')],
  step: ['UPDATE latchkey_steps SET state = 7 WHERE id = ?1'],
}

export async function sqliteHarness(open: Open): Promise<SqliteHarness> {
  const directory = await mkdtemp(join(tmpdir(), 'latchkey-sqlite-'))
  const path = join(directory, 'data.db')
  const stores: SqliteStore[] = []
  const outside = handleOf(open(path))
  outside.exec(
    'PRAGMA journal_mode = WAL; PRAGMA busy_timeout = 5000; CREATE TABLE orders (value TEXT NOT NULL) STRICT',
  )
  return {
    path,
    async open(options = {}) {
      // Generous: on a busy machine no call is to be refused for want of time, unless a test asks for it.
      const store = sqliteStore({ path, open, waitMs: 20_000, transactionMs: 20_000, ...options })
      stores.push(store)
      await store.migrate()
      return store
    },
    async spoil(id, damage) {
      outside.exec('PRAGMA ignore_check_constraints = ON')
      for (const sql of spoilSql[damage]) outside.query(sql, [id])
    },
    async advance(ms) {
      for (const sql of [advanceSql, advanceSteps, ...advanceNotes, ...advanceQueues]) outside.query(sql, [ms])
    },
    business: {
      // The store hands out its own tx.
      send: async (tx, command) => (tx as SqliteTx).exec(command),
      async insert(tx, value) {
        // A transaction of ours begins with its first reservation; adopting it begins it too. Only one store knows it.
        const adopted = await Promise.any(stores.map(store => store.transactor.adopt(tx)))
        adopted.run('INSERT INTO orders VALUES (?1)', [value])
      },
      values: async () => outside.query('SELECT value FROM orders ORDER BY rowid').map(row => String(row.value)),
    },
    async close() {
      for (const store of stores) await store.close()
      outside.close()
      await rm(directory, { recursive: true })
    },
  }
}
