import { expect, it } from 'vitest'
import { memoryStore } from '../stores/memory/index.ts'
import type { AtomicOperation } from './operation.ts'
import { createLatchkey } from './latchkey.ts'
import { uncoveredExecution } from './execution.ts'

const guarded = createLatchkey({ store: memoryStore(), scope: () => 'acme' }).guarded('mail.send', {
  onFailure: 'rerun',
})

it('gives a handler without a claim everything that needs none', () => {
  const { key, operation, attempt, fence, signal } = uncoveredExecution(guarded)
  expect({ key, operation, attempt, fence }).toEqual({ key: '', operation: 'mail.send', attempt: 1, fence: 0 })
  expect(signal.aborted).toBe(false)
})

it('says so when a key is derived or a transaction is used without a claim', () => {
  expect(() => uncoveredExecution(guarded).downstreamKey('charge')).toThrow('mail.send: the request is not covered')
  // Only the kind is looked at.
  const atomic = { ...guarded, kind: 'atomic' } as unknown as AtomicOperation<object>
  expect(() => uncoveredExecution(atomic).tx).toThrow('there is no transaction')
  expect('tx' in uncoveredExecution(guarded)).toBe(false)
})
