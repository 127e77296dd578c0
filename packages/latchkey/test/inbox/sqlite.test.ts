import { afterAll, beforeAll, describe } from 'vitest'
import { handleOf } from '../../src/stores/sqlite/connection/handle.ts'
import type { SqliteTx } from '../../src/stores/sqlite/index.ts'
import { sqliteDrivers } from '../sqlite/drivers.ts'
import { sqliteHarness, type SqliteHarness } from '../sqlite/fixture.ts'
import type { Ground } from './fixture.ts'
import { itReceives } from './receive.cases.ts'
import { itRedrives } from './redrive.cases.ts'

describe.each(sqliteDrivers)('an inbox on SQLite with $driver', ({ open }) => {
  let harness: SqliteHarness
  let outside: ReturnType<typeof handleOf>
  let ground: Ground
  beforeAll(async () => {
    harness = await sqliteHarness(open)
    const store = await harness.open()
    outside = handleOf(open(harness.path))
    ground = {
      store,
      // The store hands out its own tx.
      book: async (tx, label) => void (tx as SqliteTx).run('INSERT INTO orders VALUES (?1)', [label]),
      booked: async label => outside.query('SELECT 1 FROM orders WHERE value = ?1', [label]).length,
    }
  })
  afterAll(async () => {
    outside.close()
    await harness.close()
  })
  itReceives(() => ground)
  itRedrives(() => ground)
})
