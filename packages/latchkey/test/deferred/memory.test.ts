import { describe, expect, it } from 'vitest'
import { createLatchkey } from 'latchkey'
import { memoryStore } from 'latchkey/stores/memory'
import { withoutFaculties } from '../memory/fixture.ts'
import { itDefers } from './deferred.cases.ts'

describe('deferred work in memory', () => itDefers(() => 'memory:deferred'))

describe('deferred work', () => {
  it('needs a store that keeps steps', () => {
    const latchkey = createLatchkey({ store: withoutFaculties(memoryStore()), scope: () => 'acme' })
    const declare = () =>
      latchkey.deferred('exports.create', { deadlineMs: 1, steps: 'effects' }, async () => undefined as never)
    expect(declare).toThrow('exports.create: the core store has no steps (traits.faculties)')
  })
})
