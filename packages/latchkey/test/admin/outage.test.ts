import Database from 'libsql'
import { describe } from 'vitest'
import { sqliteHarness } from '../sqlite/fixture.ts'
import { outageCases } from './outage.cases.ts'

describe('after an outage, on SQLite', () =>
  outageCases(async () => {
    const harness = await sqliteHarness(path => new Database(path))
    return { store: await harness.open(), close: () => harness.close() }
  }))
