import { describe, expect, it } from 'vitest'
import { createLatchkey } from 'latchkey'
import { memoryStore } from 'latchkey/stores/memory'
import { withoutTransactions } from '../memory/fixture.ts'
import { itDefers } from './deferred.cases.ts'

describe('deferred work in memory', () => itDefers(() => 'memory:deferred'))

describe('deferred work', () => {
  it('needs a store that keeps steps', () => {
    const latchkey = createLatchkey({ store: withoutTransactions(memoryStore()), scope: () => 'acme' })
    expect(() => latchkey.deferred('exports.create', { deadlineMs: 1 }, async () => undefined as never)).toThrow(
      'the plain store has no transactions',
    )
  })
})
