import { describe, expect, expectTypeOf, it } from 'vitest'
import { singleTenant } from '../../src/engine/request.ts'
import { createLatchkey } from '../../src/engine/latchkey.ts'
import type { Store } from '../../src/ports/store.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'
import { withoutTransactions } from '../memory/fixture.ts'

const store = memoryStore()
const latchkey = () => createLatchkey({ store, scope: singleTenant })
const guarded = () => latchkey().guarded('orders.create', { onFailure: 'hold' })
const misconfigured = (message: string) =>
  expect.objectContaining({ code: 'misconfigured', message: expect.stringContaining(message) })

/** Never called: what may not compile, each line by itself. */
export const forgotten = {
  // @ts-expect-error a store is required
  store: () => createLatchkey({ scope: singleTenant }),
  // @ts-expect-error a scope is required
  scope: () => createLatchkey({ store }),
  // @ts-expect-error a scope is a function of the request, not a value
  constantScope: () => createLatchkey({ store, scope: 'acme' }),
  // @ts-expect-error an operation has a name
  name: () => latchkey().guarded(undefined, { onFailure: 'hold' }),
  // @ts-expect-error guarded needs options
  options: () => latchkey().guarded('orders.create'),
  // @ts-expect-error guarded needs onFailure
  onFailure: () => latchkey().guarded('orders.create', {}),
  // @ts-expect-error retry is no onFailure
  wrongOnFailure: () => latchkey().guarded('orders.create', { onFailure: 'retry' }),
  // @ts-expect-error run needs a scope too
  runScope: () => guarded().run({ key: 'k', input: 1 }, () => 1),
  // @ts-expect-error run needs a key
  runKey: () => guarded().run({ scope: 'a', input: 1 }, () => 1),
  // @ts-expect-error run needs an input: without one every request would be the same
  runInput: () => guarded().run({ scope: 'a', key: 'k' }, () => 1),
  // @ts-expect-error an atomic operation has no lease
  atomicLease: () => latchkey().atomic('orders.create', { leaseMs: 1_000 }),
  // @ts-expect-error a verdict needs somebody who gives it
  settle: () => latchkey().settle({ id: 'x' }, { kind: 'never-happened' }),
}

/** What plain JavaScript hands in, past the types. */
const untyped = <T>(value: unknown): T => value as T

describe('createLatchkey', () => {
  it('refuses to be made without a store or a scope', () => {
    expect(() => createLatchkey(untyped<Parameters<typeof createLatchkey>[0]>({ scope: singleTenant }))).toThrow(
      misconfigured('needs a store'),
    )
    expect(() => createLatchkey(untyped<Parameters<typeof createLatchkey>[0]>({ store }))).toThrow(
      misconfigured('needs a scope'),
    )
    expect(() => createLatchkey(untyped<Parameters<typeof createLatchkey>[0]>({ store, scope: 'acme' }))).toThrow(
      misconfigured('needs a scope'),
    )
  })
})

describe('an operation', () => {
  it.each([undefined, '', ' ', 'with space', '/orders/:id', '-x', 'x'.repeat(129), 'naïve'])(
    'refuses the name %j',
    name => {
      expect(() => latchkey().guarded(untyped(name), { onFailure: 'hold' })).toThrow(misconfigured('stable name'))
    },
  )

  it('takes the names that people use', () => {
    for (const name of ['payments.create', 'orders:create', 'A-1_b', 'x'.repeat(128)]) {
      expect(latchkey().guarded(name, { onFailure: 'hold' })).toMatchObject({ kind: 'guarded', name })
    }
  })

  it.each([undefined, {}, { onFailure: 'retry' }])('refuses guarded with %j', options => {
    expect(() => latchkey().guarded('orders.create', untyped(options))).toThrow(misconfigured('onFailure'))
  })

  it('has one kind: the same name as another kind is an error', () => {
    const one = createLatchkey({
      store: { ...store, transactor: untyped<NonNullable<Store['transactor']>>({}) },
      scope: singleTenant,
    })
    one.guarded('orders.create', { onFailure: 'hold' })
    expect(() => one.atomic('orders.create')).toThrow(
      misconfigured('orders.create is declared as guarded and as atomic'),
    )
    one.atomic('orders.cancel')
    expect(() => one.guarded('orders.cancel', { onFailure: 'hold' })).toThrow(
      misconfigured('declared as atomic and as guarded'),
    )
    expect(() => one.guarded('orders.create', { onFailure: 'hold' })).not.toThrow()
  })

  it('refuses guarded on a single connection, and takes two or an unknown number', () => {
    const withConnections = (connections: number | undefined) =>
      createLatchkey({ store: { ...store, traits: { ...store.traits, connections } }, scope: singleTenant })
    expect(() => withConnections(1).guarded('orders.create', { onFailure: 'hold' })).toThrow(misconfigured('max: 2'))
    expect(() => withConnections(2).guarded('orders.create', { onFailure: 'hold' })).not.toThrow()
    expect(() => withConnections(undefined).guarded('orders.create', { onFailure: 'hold' })).not.toThrow()
  })

  it('refuses atomic on a store that has no transactions', () => {
    const plain = createLatchkey({ store: withoutTransactions(store), scope: singleTenant })
    expect(() => plain.atomic('orders.create')).toThrow(misconfigured('the plain store has no transactions'))
  })

  it('refuses wrong durations when it is declared, not at the first request', () => {
    expect(() => latchkey().guarded('orders.create', { onFailure: 'hold', leaseMs: 0 })).toThrow(
      misconfigured('leaseMs'),
    )
    expect(() => latchkey().guarded('orders.create', { onFailure: 'hold', retentionMs: 1_000 })).toThrow(
      misconfigured('retentionMs'),
    )
  })

  it('gives run the handler’s own type', async () => {
    const operation = latchkey().guarded('types', { onFailure: 'hold' })
    const value = operation.run({ scope: 'acme', key: 'k', input: 1 }, async ({ fence }) => ({ fence }))
    expectTypeOf(value).resolves.toEqualTypeOf<{ fence: number }>()
    expect(await value).toEqual({ fence: 1 })
  })

  it('runs also when its methods are taken off it', async () => {
    const { run } = latchkey().guarded('detached', { onFailure: 'hold' })
    expect(await run({ scope: 'acme', key: 'k', input: 1 }, () => 'ran')).toBe('ran')
  })
})
