import { describe, it } from 'vitest'
import { outboxHarness } from '../../../../test/sqlite/outbox-harness.ts'
import { runOutboxCases } from '@latchkey/conformance'

describe('the outbox on SQLite', () => runOutboxCases(outboxHarness, it, ['several-writers']))
