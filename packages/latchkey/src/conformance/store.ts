/** The store conformance cases, as data: every store passes them against its real server. */
import assert from 'node:assert/strict'
import type { StoreTraits } from '../ports/store.ts'
import { type SpoilableHarness, type StoreCase, type StoreHarness, withHarness } from './store-harness.ts'
import { applyingCases } from './store/applying.ts'
import { byteCases } from './store/bytes.ts'
import { checkCases } from './store/checks.ts'
import { claimCases } from './store/claims.ts'
import { contradictionCases } from './store/contradictions.ts'
import { deferredCases } from './store/deferred.ts'
import { evidenceCases } from './store/evidence.ts'
import { expiryCases } from './store/expiry.ts'
import { intentCases } from './store/intents.ts'
import { leaseCases } from './store/leases.ts'
import { ledgerCases } from './store/ledgers.ts'
import { listingCases } from './store/listing.ts'
import { longLifeCases } from './store/long-lives.ts'
import { lookingCases } from './store/looking.ts'
import { lostClaimCases } from './store/lost-claims.ts'
import { lookupCases } from './store/lookups.ts'
import { operatorCases } from './store/operators.ts'
import { ownerCases } from './store/owners.ts'
import { parkingCases } from './store/parking.ts'
import { quarantineCases } from './store/quarantine.ts'
import { reservationCases } from './store/reservations.ts'
import { resumingCases } from './store/resuming.ts'
import { settlingEffectCases } from './store/settling-effects.ts'
import { stepCases } from './store/steps.ts'
import { takeOverCases } from './store/take-over.ts'
import { tombstoneBesideCases } from './store/tombstones-beside.ts'
import { tombstoneCases } from './store/tombstones.ts'
import { transactionCases } from './store/transactions.ts'
import { unreadableCases } from './store/unreadable.ts'
import { verdictCases } from './store/verdicts.ts'
import { waitingCases } from './store/waiting.ts'

export const storeCases: readonly StoreCase[] = [
  ...claimCases,
  ...takeOverCases,
  ...ownerCases,
  ...lostClaimCases,
  ...leaseCases,
  ...expiryCases,
  ...longLifeCases,
  ...checkCases,
  ...operatorCases,
  ...listingCases,
  ...byteCases,
  ...transactionCases,
  ...reservationCases,
  ...parkingCases,
  ...stepCases,
  ...intentCases,
  ...resumingCases,
  ...evidenceCases,
  ...applyingCases,
  ...quarantineCases,
  ...contradictionCases,
  ...settlingEffectCases,
  ...verdictCases,
  ...lookupCases,
  ...lookingCases,
  ...waitingCases,
  ...deferredCases,
  ...tombstoneCases,
  ...tombstoneBesideCases,
  ...ledgerCases,
]

/** Fits `it` of vitest, jest and mocha, and `test` of node:test. */
export type TestFunction = (name: string, run: () => Promise<void>) => void

/** What a case needs beyond the core of the port. */
export type StoreNeed = NonNullable<StoreCase['needs']>

/**
 * Registers every case, each with a harness of its own over empty data. A store that denies a trait says so here: its cases
 * are left out, and it is checked to deny it.
 */
export function runStoreCases(
  open: () => Promise<StoreHarness>,
  test: TestFunction,
  denied: readonly StoreNeed[] = [],
): void {
  for (const { name, needs, run } of storeCases) {
    if (needs === undefined || !denied.includes(needs)) test(name, () => withHarness(open, run))
  }
  for (const need of ['transactional', 'many-processes'] as const) {
    const word = denied.includes(need) ? 'denies' : 'has'
    test(`${word} the trait ${need}`, () =>
      withHarness(open, async harness => {
        const { traits } = await harness.open()
        assert.equal(hasTrait(traits, need), !denied.includes(need))
      }))
  }
}

/** The cases of rows that this version cannot read, for a store whose rows others can write. */
export function runUnreadableCases(open: () => Promise<SpoilableHarness>, test: TestFunction): void {
  for (const { name, run } of unreadableCases) test(name, () => withHarness(open, run))
}

function hasTrait(traits: StoreTraits, need: StoreNeed): boolean {
  return need === 'transactional' ? traits.transactional : traits.processes === 'many'
}
