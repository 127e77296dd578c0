/** The store conformance harness over a memory store whose clock is moved by hand. */
import type { StoreHarness } from '@latchkey/conformance'
import { systemClock } from '../../src/ports/clock.ts'
import type { Faculty, FullStore, StoreWithoutTransactions } from '../../src/ports/store.ts'
import { memoryStore, type MemoryStore, type MemoryTx } from '../../src/stores/memory/index.ts'

export interface MemoryHarness extends StoreHarness {
  readonly store: MemoryStore
}

export async function memoryHarness(): Promise<MemoryHarness> {
  // Stands still unless it is advanced: the edges, where nothing is left, are met exactly.
  let nowMs = Date.UTC(2026, 0, 1)
  const clock = { ...systemClock, nowMs: () => nowMs, monotonicMs: () => nowMs }
  // Generous: on a busy machine no transaction is to be refused for want of time.
  const store = memoryStore({ clock, waitMs: 20_000, transactionMs: 20_000 })
  let orders = 0
  return {
    store,
    open: async () => store,
    advance: async ms => {
      nowMs += ms
    },
    business: {
      async insert(tx, value) {
        // A transaction begins with its first reservation; adopting it begins it as well.
        const { table } = await store.transactor.adopt(tx)
        table('orders').set(String((orders += 1)), value)
      },
      // The store hands out its own tx.
      send: async (tx, command) => (tx as MemoryTx)[commands[command]](),
      values: async () =>
        store
          .table<string>('orders')
          .entries()
          .map(([, value]) => value),
    },
    close: async () => {},
  }
}

const commands = { BEGIN: 'begin', COMMIT: 'commit', ROLLBACK: 'rollback' } as const

const transactionFaculties: readonly Faculty[] = ['transactions', 'phases', 'outbox', 'auditRecords']

/** The same store, as one that has no transactions, and so neither phases nor an outbox. What records lines is left out: it would be a store with transactions. */
export function withoutTransactions(store: FullStore<MemoryTx>): StoreWithoutTransactions {
  const { transactor: _transactor, phases: _phases, outbox: _outbox, auditRecords: _records, ...rest } = store
  const { traits } = store
  return {
    ...rest,
    name: 'plain',
    traits: {
      ...traits,
      kinds: traits.kinds.filter(kind => kind !== 'atomic'),
      transactional: false,
      faculties: traits.faculties.filter(faculty => !transactionFaculties.includes(faculty)),
    },
  }
}

/** The core alone: guarded operations, swept, reaped, and settled by operators. */
export function withoutFaculties(store: FullStore<MemoryTx>): StoreWithoutTransactions {
  const { steps: _steps, reconciliation: _reconciliation, ledgers: _ledgers, ...rest } = withoutTransactions(store)
  const {
    values: _values,
    erasure: _erasure,
    quotas: _quotas,
    inbox: _inbox,
    references: _references,
    admin: _admin,
    ...core
  } = rest
  return {
    ...core,
    name: 'core',
    traits: { ...core.traits, kinds: ['guarded'], faculties: [] },
    enqueue: () => Promise.reject(new Error('the core store keeps no steps')),
  }
}
