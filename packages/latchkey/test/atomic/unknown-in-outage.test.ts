import { afterAll, beforeAll, expect, it } from 'vitest'
import { engine } from '../../src/engine/internal.ts'
import { outcomeUnknown } from '../../src/ports/errors.ts'
import { type BreakableStore, breakableStore } from '../engine/breakable-store.ts'
import { executeRequest, idOf, latchkeyOn, operationName, told } from '../engine/fixture.ts'

let breakable: BreakableStore
beforeAll(async () => {
  breakable = await breakableStore()
})
afterAll(() => breakable.close())

it('does not free the key of an atomic handler that does not know its outcome, when the reply to recording that is lost', async () => {
  const latchkey = latchkeyOn(breakable.store)
  const operation = latchkey.atomic(operationName)
  const lost = () => Promise.reject(new Error('the connection broke'))
  breakable.faults = { claim: run => run().then(lost), read: lost }
  const answer = await operation[engine].execute(executeRequest('lost'), async () => ({
    kind: 'threw',
    error: outcomeUnknown('socket hang up'),
  }))
  expect(told(answer)).toBe('refused outcome-unknown')
  breakable.faults = {}
  // Waits until nothing is left to be released.
  expect(await latchkey.close()).toEqual({ drained: true, unstored: 0 })
  // Held: with its dead lease it becomes unknown.
  expect(await breakable.real.read(idOf('lost'))).toMatchObject({ state: 'in_progress', recovery: 'hold' })
})
