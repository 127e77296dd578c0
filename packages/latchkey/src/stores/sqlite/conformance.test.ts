import Database from 'libsql'
import { describe, it } from 'vitest'
import { checkStoreModel } from '../../../test/properties/store-properties.ts'
import { sqliteHarness } from '../../../test/sqlite/fixture.ts'
import { runStoreCases, runUnreadableCases } from '@latchkey/conformance'

const harness = () => sqliteHarness(path => new Database(path))

describe('SQLite store', () => {
  runStoreCases(harness, it)
  runUnreadableCases(harness, it)

  it('agrees with the model, whatever callers do', () => checkStoreModel(harness, { numRuns: 40 }))
})
