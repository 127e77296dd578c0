/** The stores that every adapter's conformance run uses: memory, and a SQLite file for atomic operations. */
import Database from 'libsql'
import type { AdapterHarness } from '@latchkey/conformance'
import { memoryStore } from '../../src/stores/memory/index.ts'
import type { SqliteTx } from '../../src/stores/sqlite/index.ts'
import { sqliteHarness } from '../sqlite/fixture.ts'

export const adapterStores: Required<Pick<AdapterHarness, 'memoryStore' | 'transactional'>> = {
  memoryStore: () => memoryStore(),
  async transactional() {
    const harness = await sqliteHarness(path => new Database(path))
    return {
      store: await harness.open(),
      async insert(tx, value) {
        // The store above is SQLite, so its transactions are.
        const { run } = tx as SqliteTx
        run('INSERT INTO orders VALUES (?1)', [value])
      },
      values: async () => (await harness.business?.values()) ?? [],
      close: () => harness.close(),
    }
  },
}
