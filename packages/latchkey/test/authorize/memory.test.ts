import { describe, expect, it } from 'vitest'
import { engine } from '../../src/engine/internal.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'
import { answered, executeRequest, faultyStore, latchkeyOn, operationName, told } from '../engine/fixture.ts'
import { itAuthorisesBeforeARowChangesHands } from './replay.cases.ts'

describe('a row of somebody else, in memory', () => {
  itAuthorisesBeforeARowChangesHands(async () => ({ store: memoryStore(), close: async () => {} }))

  it.each([
    ['one claim where nobody has to be asked', undefined, 1],
    ['a second one where the caller is allowed', async () => true, 2],
  ] as const)('costs %s', async (_, authorizeReplay, claims) => {
    const { store, calls } = faultyStore()
    const latchkey = latchkeyOn(store)
    const operation = latchkey.guarded(operationName, { onFailure: 'rerun' })
    const ask = (status: number) =>
      operation[engine].execute(executeRequest('k', { authorizeReplay }), async () => answered(status))
    expect(told(await ask(503))).toBe('executed 503 not-stored')
    calls.claim = 0
    expect(told(await ask(201))).toBe('executed 201 yes')
    expect(calls.claim).toBe(claims)
    await latchkey.close()
  })
})
