import { describe, it } from 'vitest'
import { memoryHarness } from '../../../../test/memory/fixture.ts'
import { runOutboxCases } from '@latchkey/conformance'

describe('the outbox in memory', () => {
  // One transaction at a time: none commits out of turn.
  runOutboxCases(memoryHarness, it, ['several-writers'])
})
