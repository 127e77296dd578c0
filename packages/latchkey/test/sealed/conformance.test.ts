import Database from 'libsql'
import { describe, it } from 'vitest'
import { runOutboxCases, runStoreCases, runUnreadableCases } from '@latchkey/conformance'
import { memoryHarness } from '../memory/fixture.ts'
import { checkStoreModel } from '../properties/store-properties.ts'
import { sqliteHarness } from '../sqlite/fixture.ts'
import { outboxHarness } from '../sqlite/outbox-harness.ts'
import { sealedHarness, sealedSelection } from './harness.ts'

describe('the memory store, encrypted', () => {
  const open = () => sealedHarness(memoryHarness())
  runStoreCases(open, it, sealedSelection)
  runOutboxCases(open, it, ['several-writers'])

  it('agrees with the model, whatever callers do', () => checkStoreModel(open, { numRuns: 200 }))
})

describe('the SQLite store, encrypted', () => {
  const open = () => sealedHarness(sqliteHarness(path => new Database(path)))
  runStoreCases(open, it, sealedSelection)
  runUnreadableCases(open, it)
  runOutboxCases(() => sealedHarness(outboxHarness()), it, ['several-writers'])
})
