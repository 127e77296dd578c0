import { describe, expect, expectTypeOf, it } from 'vitest'
import {
  type AtomicOperation,
  createLatchkey,
  type DeferredOperation,
  type GuardedOperation,
  type Latchkey,
  type Operators,
  type PhasedOperation,
} from './index.ts'
import { memoryStore } from './stores/memory/index.ts'

/** What an editor offers after the dot. */
type Shown<T> = Exclude<keyof T, symbol>

describe('what a user sees', () => {
  const latchkey = createLatchkey({ store: memoryStore(), scope: () => 'acme' })
  const operators = ['find', 'forget', 'inspect', 'list', 'settle', 'unpark']

  it('of a Latchkey is what a user calls', () => {
    expectTypeOf<Shown<Latchkey<unknown, unknown>>>().toEqualTypeOf<
      | keyof Operators
      | 'atomic'
      | 'guarded'
      | 'phased'
      | 'deferred'
      | 'outbox'
      | 'identify'
      | 'erase'
      | 'auditRecords'
      | 'rewrap'
      | 'close'
    >()
    expect(Object.keys(latchkey).toSorted()).toEqual(
      [
        ...operators,
        'atomic',
        'auditRecords',
        'close',
        'deferred',
        'erase',
        'guarded',
        'identify',
        'outbox',
        'phased',
        'rewrap',
      ].toSorted(),
    )
  })

  it('of an operation is its kind, its name, its version and how it is run', () => {
    expectTypeOf<Shown<AtomicOperation<unknown> | GuardedOperation>>().toEqualTypeOf<
      'kind' | 'name' | 'run' | 'runDetailed'
    >()
    expectTypeOf<Shown<PhasedOperation<unknown> | DeferredOperation<unknown>>>().toEqualTypeOf<
      'kind' | 'name' | 'version' | 'run'
    >()
    expect(Object.keys(latchkey.guarded('orders.create', { onFailure: 'hold' }))).toEqual([
      'kind',
      'name',
      'run',
      'runDetailed',
    ])
  })
})
