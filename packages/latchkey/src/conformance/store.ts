/** The store conformance cases, as data: every store passes them against its real server. */
import type { StoreTraits } from '../ports/store.ts'
import type { StoreCase, StoreHarness } from './store-harness.ts'
import { byteCases } from './store/bytes.ts'
import { claimCases } from './store/claims.ts'
import { expiryCases } from './store/expiry.ts'
import { leaseCases } from './store/leases.ts'
import { listingCases } from './store/listing.ts'
import { operatorCases } from './store/operators.ts'
import { ownerCases } from './store/owners.ts'
import { reservationCases } from './store/reservations.ts'
import { transactionCases } from './store/transactions.ts'

export const storeCases: readonly StoreCase[] = [
  ...claimCases,
  ...ownerCases,
  ...leaseCases,
  ...expiryCases,
  ...operatorCases,
  ...listingCases,
  ...byteCases,
  ...transactionCases,
  ...reservationCases,
]

/** What test runners hand to a test; a case whose trait the store denies is reported as skipped where that is possible. */
export interface CaseContext {
  skip?(note?: string): void
}

/** Fits `it` of vitest, jest and mocha, and `test` of node:test. */
export type TestFunction = (name: string, run: (context?: CaseContext) => Promise<void>) => void

/** Registers every case, each with a harness of its own over empty data. */
export function runStoreCases(open: () => Promise<StoreHarness>, test: TestFunction): void {
  for (const storeCase of storeCases) {
    test(storeCase.name, async context => {
      const harness = await open()
      try {
        const { name, traits } = await harness.open()
        if (denies(traits, storeCase.needs)) context?.skip?.(`${name} is not ${storeCase.needs}`)
        else await storeCase.run(harness)
      } finally {
        await harness.close()
      }
    })
  }
}

function denies(traits: StoreTraits, need: StoreCase['needs']): boolean {
  if (need === 'transactional') return !traits.transactional
  return need === 'many-processes' && traits.processes !== 'many'
}
