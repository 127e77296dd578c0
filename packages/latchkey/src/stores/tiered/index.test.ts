import { describe, expect, it } from 'vitest'
import { createLatchkey } from 'latchkey'
import { withoutTransactions } from '../../../test/memory/fixture.ts'
import { memoryStore } from '../memory/index.ts'
import { tieredStore } from './index.ts'

/** The shape of one: nothing is sent. */
const cache = { callBuffer: async () => null, on: () => undefined }
const store = memoryStore()
const operations = ['payments.create']

describe('tieredStore', () => {
  it.each([
    [undefined, 'the options must be an object'],
    [{ cache, operations }, 'store is missing: postgresStore({ pool })'],
    [{ store: {}, cache, operations }, 'store must be a store with claim, read, forget'],
    [{ store, operations }, 'cache is missing: new Redis(url) of ioredis'],
    [{ store, cache: 'redis://localhost', operations }, 'it takes a client, and no address'],
    [{ store, cache }, "operations: ['payments.create']"],
    [{ store, cache, operations: [] }, "operations: ['payments.create']"],
    [{ store, cache, operations: [7] }, 'operations[0] must be a text'],
    [{ store, cache, operations, heldMs: 60_000 }, 'heldMs must be a number above 0 and at most 5000 ms'],
    [{ store, cache, operations, ttl: 1 }, 'unknown option ttl'],
  ])('refuses %j', (options, message) => {
    expect(() => tieredStore(options as never)).toThrow(message)
  })

  it('has the type of the store below, so that what it cannot carry does not compile', () => {
    // Never called: the compiler reads it.
    const declare = () => {
      const full = createLatchkey({ store: tieredStore({ store, cache, operations }), scope: () => 'acme' })
      void full
        .atomic('order')
        .run({ scope: 'acme', key: 'k', input: 1 }, async ({ tx }) => tx.table<string>('orders').get('1'))
      const below = withoutTransactions(store)
      const plain = createLatchkey({ store: tieredStore({ store: below, cache, operations }), scope: () => 'acme' })
      // @ts-expect-error: there are no transactions.
      plain.atomic('order')
    }
    expect(declare).toBeTypeOf('function')
  })

  it('has the traits and the faculties of the store below, and its own methods', () => {
    const tiered = tieredStore({ store, cache, operations })
    // A request may wait for another one, and that is no silence of the store.
    expect(tiered.traits).toEqual({ ...store.traits, queueMsMax: 500 })
    expect(Object.keys(tiered).toSorted()).toEqual([...Object.keys(store), 'cacheFigures', 'flushCache'].toSorted())
  })
})
