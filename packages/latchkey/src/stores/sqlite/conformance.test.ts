import { describe, it } from 'vitest'
import { checkStoreModel } from '../../../test/properties/store-properties.ts'
import { sqliteDrivers } from '../../../test/sqlite/drivers.ts'
import { sqliteHarness } from '../../../test/sqlite/fixture.ts'
import { runStoreCases, runUnreadableCases } from '@latchkey/conformance'

describe.each(sqliteDrivers)('SQLite store on $driver', ({ open }) => {
  const harness = () => sqliteHarness(open)
  runStoreCases(harness, it, { elsewhere: ['outbox'] })
  runUnreadableCases(harness, it)

  it('agrees with the model, whatever callers do', () => checkStoreModel(harness, { numRuns: 40 }))
})
