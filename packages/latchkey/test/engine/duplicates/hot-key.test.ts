import Database from 'libsql'
import { afterEach, beforeEach, describe } from 'vitest'
import type { SqliteStore } from '../../../src/stores/sqlite/index.ts'
import { sqliteHarness, type SqliteHarness } from '../../sqlite/fixture.ts'
import { hotKeyCases } from './hot-key.cases.ts'

describe('a key that thousands ask for, on SQLite', () => {
  let harness: SqliteHarness
  let store: SqliteStore
  beforeEach(async () => {
    harness = await sqliteHarness(path => new Database(path))
    store = await harness.open()
  })
  afterEach(() => harness.close())

  hotKeyCases(() => store)
})
