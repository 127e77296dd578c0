import { describe, expect, expectTypeOf, it } from 'vitest'
import { singleTenant } from '../../../src/engine/request.ts'
import { createLatchkey } from '../../../src/engine/latchkey.ts'
import { createReconciler } from '../../../src/reconcile/reconciler.ts'
import type { Store } from '../../../src/ports/store.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { json } from '../../../src/engine/steps/json.ts'
import { withoutFaculties, withoutTransactions } from '../../memory/fixture.ts'

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

const plain = () => createLatchkey({ store: withoutTransactions(store), scope: singleTenant })
const effects = { version: 1, steps: 'effects' } as const

/** Never called: what a store without transactions cannot carry, and what a definition of effects only cannot do. */
export const notCarried = {
  // @ts-expect-error there are no atomic operations
  atomic: () => plain().atomic('orders.create'),
  // @ts-expect-error there is no outbox
  outbox: () => plain().outbox,
  // @ts-expect-error phased work is declared with steps: 'effects'
  phased: () => plain().phased('orders.create', { version: 1 }, async () => json(201, {})),
  // @ts-expect-error so is deferred work
  deferred: () => plain().deferred('orders.create', { deadlineMs: 1 }, async () => json(201, {})),
  // @ts-expect-error a definition of effects has no phase
  phase: () => plain().phased('orders.create', effects, async x => json(201, await x.phase('record', () => 1))),
  // @ts-expect-error also where the store has transactions
  phaseOnAny: () => latchkey().phased('orders.create', effects, async x => json(201, await x.phase('record', () => 1))),
  // @ts-expect-error and it has no outbox
  append: () => latchkey().phased('orders.create', effects, async x => json(201, x.outbox)),
  // @ts-expect-error there are no other steps to choose
  otherSteps: () => latchkey().phased('orders.create', { version: 1, steps: 'phases' }, async () => json(201, {})),
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

describe('a store', () => {
  it('is refused if its traits do not say what it carries', () => {
    const { kinds: _kinds, ...traits } = store.traits
    const older = { ...store, traits: untyped<Store['traits']>(traits) }
    expect(() => createLatchkey({ store: older, scope: singleTenant })).toThrow(
      misconfigured('the memory store does not say what it carries: give its traits kinds and faculties'),
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

  it('refuses what its store cannot carry, and names what is missing, the trait and the way out', () => {
    // As plain JavaScript sees it: a Latchkey that declares everything.
    const on = (lacking: Store) => createLatchkey<unknown, unknown>({ store: lacking, scope: singleTenant })
    const definition = async () => json(201, {})
    const withoutTx = on(withoutTransactions(store))
    expect(() => withoutTx.atomic('orders.create')).toThrow(
      misconfigured(
        'orders.create: the plain store has no transactions (traits.transactional), so nothing can commit with your rows. Use guarded, phased, or deferred, or postgresStore',
      ),
    )
    const noPhases = (name: string) =>
      misconfigured(
        `${name}: the plain store has no transactions (traits.transactional), so no phase could commit with its writes. Declare it with steps: 'effects', or use postgresStore`,
      )
    expect(() => withoutTx.phased('orders.pay', { version: 1 }, definition)).toThrow(noPhases('orders.pay'))
    expect(() => withoutTx.deferred('orders.export', { deadlineMs: 1 }, definition)).toThrow(noPhases('orders.export'))
    const core = on(withoutFaculties(store))
    const noSteps = (name: string) =>
      misconfigured(
        `${name}: the core store has no steps (traits.faculties), so nothing could be resumed or run later. Use guarded, or postgresStore`,
      )
    expect(() => core.phased('orders.pay', effects, definition)).toThrow(noSteps('orders.pay'))
    expect(() => core.deferred('orders.export', { deadlineMs: 1, steps: 'effects' }, definition)).toThrow(
      noSteps('orders.export'),
    )
    const guardedOnly = on({ ...store, traits: { ...store.traits, kinds: ['guarded'] } })
    expect(() => guardedOnly.phased('orders.pay', { version: 1 }, definition)).toThrow(
      misconfigured(
        'orders.pay: the memory store does not carry phased operations (traits.kinds). Use guarded, or postgresStore',
      ),
    )
    const withoutPhases = on({ ...store, phases: undefined })
    expect(() => withoutPhases.phased('orders.pay', { version: 1 }, definition)).toThrow(
      misconfigured('orders.pay: the memory store has no phases (traits.faculties)'),
    )
  })

  it('leaves the name of a refused operation free for one that its store carries', () => {
    const lacking = createLatchkey<unknown, unknown>({ store: withoutTransactions(store), scope: singleTenant })
    expect(() => lacking.atomic('orders.create')).toThrow(misconfigured('has no transactions'))
    expect(lacking.guarded('orders.create', { onFailure: 'hold' }).kind).toBe('guarded')
  })

  it('refuses an append, a reconciler and a ledger where the store has none of it', async () => {
    const lacking = createLatchkey<unknown, unknown>({ store: withoutFaculties(store), scope: singleTenant })
    await expect(lacking.outbox.append({}, { topic: 'orders', payload: 1 })).rejects.toThrow(
      misconfigured('outbox.append: the core store has no outbox (traits.faculties)'),
    )
    expect(() => createReconciler(lacking)).toThrow(
      misconfigured('the core store has no reconciliation (traits.faculties). Settle what is unknown as an operator'),
    )
    const reconciler = createReconciler(
      createLatchkey<unknown, unknown>({ store: { ...store, ledgers: undefined }, scope: singleTenant }),
    )
    expect(() => reconciler.ledger('books', untyped<never>({}))).toThrow(
      misconfigured('the memory store has no ledgers (traits.faculties). Use look-ups and webhooks'),
    )
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
