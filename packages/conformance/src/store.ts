/** The store conformance cases, as data: every store passes them against its real server. */
import assert from 'node:assert/strict'
import type { StoreTraits } from 'latchkey'
import { type SpoilableHarness, type StoreCase, type StoreHarness, withHarness } from './store-harness.ts'
import { applyingCases } from './store/reconcile/apply.ts'
import { byteCases } from './store/keys/bytes.ts'
import { checkCases } from './store/keys/checks.ts'
import { claimCases } from './store/keys/claims.ts'
import { contradictionCases } from './store/reconcile/contradictions.ts'
import { deferredCases } from './store/steps/deferred.ts'
import { erasureCases } from './store/values/erasure.ts'
import { evidenceCases } from './store/reconcile/evidence.ts'
import { expiryCases } from './store/keys/expiry.ts'
import { intentCases } from './store/steps/intents.ts'
import { leaseCases } from './store/keys/leases.ts'
import { leasedTokenCases } from './store/quotas/leases.ts'
import { ledgerCases } from './store/reconcile/ledgers.ts'
import { listingCases } from './store/keys/listing.ts'
import { longLifeCases } from './store/keys/long-spans.ts'
import { lookingCases } from './store/reconcile/look-up-answers.ts'
import { lostClaimCases } from './store/keys/lost-claims.ts'
import { lookupCases } from './store/reconcile/look-ups.ts'
import { operatorCases } from './store/keys/operators.ts'
import { ownerCases } from './store/keys/owners.ts'
import { parkingCases } from './store/keys/parking.ts'
import { quarantineCases } from './store/reconcile/quarantine.ts'
import { reservationCases } from './store/atomic/reservations.ts'
import { resumingCases } from './store/steps/resuming.ts'
import { settlingEffectCases } from './store/reconcile/open-effects.ts'
import { stepCases } from './store/steps/steps.ts'
import { takeOverCases } from './store/keys/take-over.ts'
import { tombstoneBesideCases } from './store/atomic/tombstones.ts'
import { tombstoneCases } from './store/keys/tombstones.ts'
import { transactionCases } from './store/atomic/transactions.ts'
import { unreadableCases } from './store/keys/unreadable.ts'
import { usageCases } from './store/quotas/usage.ts'
import { valueCases } from './store/values/pages.ts'
import { verdictCases } from './store/reconcile/verdicts.ts'
import { waitingCases } from './store/reconcile/waiting.ts'

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
  ...valueCases,
  ...erasureCases,
  ...leasedTokenCases,
  ...usageCases,
]

/** Fits `it` of vitest, jest and mocha, and `test` of node:test. */
export type TestFunction = (name: string, run: () => Promise<void>) => void

/** What a case needs beyond the core of the port. */
export type StoreNeed = NonNullable<StoreCase['needs']>

/**
 * Registers every case, each with its own harness over empty data. List the traits that a store does not have in `denied`: their cases are
 * omitted, and a case checks that the store denies the trait.
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

/** The cases about rows that this version cannot read, for a store whose rows other programs can write. */
export function runUnreadableCases(open: () => Promise<SpoilableHarness>, test: TestFunction): void {
  for (const { name, run } of unreadableCases) test(name, () => withHarness(open, run))
}

function hasTrait(traits: StoreTraits, need: StoreNeed): boolean {
  return need === 'transactional' ? traits.transactional : traits.processes === 'many'
}
