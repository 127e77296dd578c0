import { describe, it } from 'vitest'
import { memoryHarness, withoutFaculties, withoutTransactions } from '../../../test/memory/fixture.ts'
import { checkStoreModel } from '../../../test/properties/store-properties.ts'
import { runStoreCases, type StoreHarness } from '@latchkey/conformance'
import type { Store } from '../../ports/store.ts'
import type { MemoryStore } from './index.ts'

describe('memory store', () => {
  runStoreCases(memoryHarness, it, { elsewhere: ['outbox'] })

  it('agrees with the model, whatever callers do', () => checkStoreModel(memoryHarness, { numRuns: 1_000 }))
})

/** The harness of a store with fewer faculties. */
function lacking(without: (store: MemoryStore) => Store): () => Promise<StoreHarness> {
  return async () => {
    const { store, advance, close } = await memoryHarness()
    return { open: async () => without(store), advance, close }
  }
}

describe('memory store without transactions', () => {
  const open = lacking(withoutTransactions)
  runStoreCases(open, it, {
    faculties: ['steps', 'reconciliation', 'ledgers', 'values', 'erasure', 'quotas', 'inbox', 'references', 'admin'],
  })

  it('agrees with the model, whatever callers do', () => checkStoreModel(open, { numRuns: 200 }))
})

describe('the core of the memory store', () => {
  runStoreCases(lacking(withoutFaculties), it, { faculties: [], print: () => {} })
})
