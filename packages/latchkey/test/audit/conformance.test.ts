import Database from 'libsql'
import { describe, it } from 'vitest'
import { runOutboxCases, runStoreCases, runUnreadableCases } from '@latchkey/conformance'
import { memoryHarness } from '../memory/fixture.ts'
import { checkStoreModel } from '../properties/store-properties.ts'
import { sqliteHarness } from '../sqlite/fixture.ts'
import { outboxHarness } from '../sqlite/outbox-harness.ts'
import { recordingHarness } from './harness.ts'

describe('the memory store that records lines', () => {
  const open = () => recordingHarness(memoryHarness())
  runStoreCases(open, it, { elsewhere: ['outbox'] })
  runOutboxCases(open, it, ['several-writers'])

  it('agrees with the model, whatever callers do', () => checkStoreModel(open, { numRuns: 200 }))
})

describe('the SQLite store that records lines', () => {
  const open = () => recordingHarness(sqliteHarness(path => new Database(path)))
  runStoreCases(open, it, { elsewhere: ['outbox'] })
  runOutboxCases(() => recordingHarness(outboxHarness()), it, ['several-writers'])
  runUnreadableCases(open, it)

  it('agrees with the model, whatever callers do', () => checkStoreModel(open, { numRuns: 20 }), 120_000)
})
