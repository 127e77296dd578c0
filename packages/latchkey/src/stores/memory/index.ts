import { checkOptions, type ChecksOf } from '../../ports/check-options.ts'
import { systemClock } from '../../ports/clock.ts'
import { having, waitedMs } from '../../ports/option-kinds.ts'
import { type MemoryStore, type MemoryStoreOptions, openMemoryStore } from './store.ts'
import { createTables } from './tables.ts'

export type { MemoryTable, MemoryTx } from './atomic/transaction.ts'
export type { MemoryStore, MemoryStoreOptions } from './store.ts'

const memoryChecks: ChecksOf<MemoryStoreOptions> = {
  clock: having('a clock', 'nowMs', 'monotonicMs', 'after'),
  transactionMs: waitedMs,
  waitMs: waitedMs,
}

/**
 * The store for tests and for one process: every kind of operation, and everything is gone when the process ends. The `tx` of an
 * atomic operation or of a phase has tables of the application's own, which roll back with it; `store.table(name)` reads what is
 * committed. One transaction is open at a time, and the others wait for it.
 */
export function memoryStore(options: MemoryStoreOptions = {}): MemoryStore {
  checkOptions('memoryStore', options, memoryChecks)
  const { clock = systemClock, transactionMs = 2_000, waitMs = 3_000 } = options
  return openMemoryStore(createTables(clock), { clock, transactionMs, waitMs })
}
