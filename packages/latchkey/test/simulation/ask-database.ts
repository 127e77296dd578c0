/** Calls of one process to the database, over the network. */
import type { MemoryStore } from '../../src/stores/memory/index.ts'
import type { Cause, Database } from './database.ts'
import type { History } from './history.ts'
import type { Network } from './network.ts'
import type { Transactions } from './transactions.ts'
import type { Process, World } from './world.ts'

export interface Place {
  readonly world: World
  readonly net: Network
  readonly database: Database
  readonly transactions: Transactions
  readonly history: History
}

export interface DatabaseCalls {
  /** Changes no row that a rule is about. */
  ask<T>(label: string, run: (store: MemoryStore) => Promise<T>): Promise<T>
  change<T>(label: string, cause: Cause, run: (store: MemoryStore) => Promise<T>): Promise<T>
}

export function askDatabase({ net, database }: Place, process: Process): DatabaseCalls {
  return {
    ask: (label, run) => net.call(process, label, () => database.read(run)),
    change: (label, cause, run) => net.call(process, label, () => database.serve(cause, run)),
  }
}
