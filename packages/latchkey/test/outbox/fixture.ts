/** The real relay over a SQLite file, and messages for it. */
import Database from 'libsql'
import type { Clock } from '../../src/ports/clock.ts'
import { systemClock } from '../../src/ports/clock.ts'
import type { NewMessage } from '../../src/ports/outbox.ts'
import type { SqliteStore } from '../../src/stores/sqlite/index.ts'
import { sqliteHarness } from '../sqlite/fixture.ts'

export interface OutboxFixture {
  readonly store: SqliteStore
  readonly clock: Clock
  append(...messages: NewMessage[]): Promise<void>
  /** Makes everything due that waits for its time. */
  makeDue(): void
  /** Expires the lease of every lane. */
  expireLeases(): void
  close(): Promise<void>
}

export function message(dedupId: string, over: Partial<NewMessage> = {}): NewMessage {
  return { topic: 'orders', aggregate: undefined, dedupId, payload: Buffer.from('{}'), headers: {}, ...over }
}

export async function openFixture(): Promise<OutboxFixture> {
  const harness = await sqliteHarness(path => new Database(path))
  const store = await harness.open()
  const outside = new Database(harness.path)
  outside.exec('PRAGMA busy_timeout = 5000')
  return {
    store,
    clock: systemClock,
    async append(...messages) {
      await store.transactor.transaction(async own => {
        const tx = await store.transactor.adopt(own)
        for (const each of messages) await store.outbox.append(tx, each)
        return 'commit'
      })
    },
    makeDue: () =>
      void outside.exec(
        'UPDATE latchkey_outbox_parked SET due_at_ms = 0 WHERE due_at_ms IS NOT NULL AND parked_at_ms IS NULL',
      ),
    expireLeases: () =>
      void outside.exec('UPDATE latchkey_outbox_lanes SET locked_until_ms = 0 WHERE locked_until_ms IS NOT NULL'),
    async close() {
      outside.close()
      await harness.close()
    },
  }
}
