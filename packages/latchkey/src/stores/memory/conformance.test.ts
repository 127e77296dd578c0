import { describe, it } from 'vitest'
import { memoryHarness } from '../../../test/memory/fixture.ts'
import { checkStoreModel } from '../../../test/properties/store-properties.ts'
import { runStoreCases } from '@latchkey/conformance'

describe('memory store', () => {
  runStoreCases(memoryHarness, it, ['many-processes'])

  it('agrees with the model, whatever callers do', () => checkStoreModel(memoryHarness, { numRuns: 1_000 }))
})
