import { describe } from 'vitest'
import { memoryStore, type MemoryTx } from '../../src/stores/memory/index.ts'
import type { Ground } from './fixture.ts'
import { itReceives } from './receive.cases.ts'
import { itRedrives } from './redrive.cases.ts'

describe('an inbox on the memory store', () => {
  const store = memoryStore()
  const ground: Ground = {
    store,
    async book(tx, label) {
      // The store hands out its own tx.
      const booked = (tx as MemoryTx).table<number>('booked')
      booked.set(label, (booked.get(label) ?? 0) + 1)
    },
    booked: async label => store.table<number>('booked').get(label) ?? 0,
  }
  itReceives(() => ground)
  itRedrives(() => ground)
})
