import Database from 'libsql'
import { describe } from 'vitest'
import { sqliteHarness } from '../sqlite/fixture.ts'
import { timesCases } from './times.cases.ts'

describe('the times of operations, on SQLite', () =>
  timesCases(async () => {
    const harness = await sqliteHarness(path => new Database(path))
    return { store: await harness.open(), close: () => harness.close() }
  }))
