/** The harness of a SQLite store that advances the clock of its outbox. */
import Database from 'libsql'
import type { StoreHarness } from '@latchkey/conformance'
import { handleOf } from '../../src/stores/sqlite/connection/handle.ts'
import { sqliteHarness } from './fixture.ts'

/** Every instant of the outbox, moved back: as good as its clock moved on. */
const advances = [
  'UPDATE latchkey_outbox SET created_at_ms = created_at_ms - ?1',
  'UPDATE latchkey_outbox_lanes SET locked_until_ms = locked_until_ms - ?1, leased_at_ms = leased_at_ms - ?1',
  'UPDATE latchkey_outbox_parked SET due_at_ms = due_at_ms - ?1, parked_at_ms = parked_at_ms - ?1',
]

export async function outboxHarness(): Promise<StoreHarness> {
  const harness = await sqliteHarness(path => new Database(path))
  const outside = handleOf(new Database(harness.path))
  outside.exec('PRAGMA busy_timeout = 5000')
  return {
    ...harness,
    async advance(ms) {
      for (const sql of advances) outside.query(sql, [Math.round(ms)])
    },
    async close() {
      outside.close()
      await harness.close()
    },
  }
}
