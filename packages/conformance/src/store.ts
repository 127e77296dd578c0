/** The store conformance cases, as data: every store passes them against its real server. */
import { needing, type SpoilableHarness, type StoreCase, type StoreHarness, withHarness } from './store-harness.ts'
import { assertSelected, selectCases, type StoreSelection } from './store-selection.ts'
import { actCases } from './store/admin/acts.ts'
import { fleetCases } from './store/admin/fleet.ts'
import { proposalCases } from './store/admin/proposals.ts'
import { workCases } from './store/admin/work.ts'
import { applyingCases } from './store/reconcile/apply.ts'
import { auditedEndCases } from './store/audit/ends.ts'
import { auditedLineCases } from './store/audit/lines.ts'
import { auditedTransactionCases } from './store/audit/transactions.ts'
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
import { parkedInboxCases } from './store/inbox/parked.ts'
import { parkCases } from './store/keys/park.ts'
import { phaseCases } from './store/steps/phases.ts'
import { quarantineCases } from './store/reconcile/quarantine.ts'
import { redriveInboxCases } from './store/inbox/redrive.ts'
import { referenceCases } from './store/references/references.ts'
import { reservationCases } from './store/atomic/reservations.ts'
import { resumeCases } from './store/steps/resume.ts'
import { settlingEffectCases } from './store/reconcile/open-effects.ts'
import { stepCases } from './store/steps/steps.ts'
import { takeOverCases } from './store/keys/take-over.ts'
import { tombstoneBesideCases } from './store/atomic/tombstones.ts'
import { tombstoneCases } from './store/keys/tombstones.ts'
import { traitCases } from './store/traits.ts'
import { transactionCases } from './store/atomic/transactions.ts'
import { unreadableCases } from './store/keys/unreadable.ts'
import { usageCases } from './store/quotas/usage.ts'
import { valueCases } from './store/values/pages.ts'
import { verdictCases } from './store/reconcile/verdicts.ts'
import { waitingCases } from './store/reconcile/waiting.ts'

export const storeCases: readonly StoreCase[] = [
  ...traitCases,
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
  ...parkCases,
  ...tombstoneCases,
  ...verdictCases,
  ...tombstoneBesideCases,
  ...needing(['transactions'], [...transactionCases, ...reservationCases]),
  ...needing(['steps'], [...stepCases, ...intentCases, ...resumeCases, ...deferredCases]),
  ...needing(['phases'], phaseCases),
  ...needing(['reconciliation'], [...evidenceCases, ...applyingCases, ...quarantineCases, ...contradictionCases]),
  ...needing(['reconciliation'], [...lookupCases, ...lookingCases, ...waitingCases]),
  ...needing(['reconciliation', 'steps'], settlingEffectCases),
  ...needing(['ledgers'], ledgerCases),
  ...needing(['values'], valueCases),
  ...needing(['erasure'], erasureCases),
  ...needing(['auditRecords'], [...auditedEndCases, ...auditedTransactionCases, ...auditedLineCases]),
  ...needing(['quotas'], [...leasedTokenCases, ...usageCases]),
  ...needing(['inbox'], [...parkedInboxCases, ...redriveInboxCases]),
  ...needing(['references'], referenceCases),
  ...needing(['admin'], [...actCases, ...workCases, ...proposalCases, ...fleetCases]),
]

/** Fits `it` of vitest, jest and mocha, and `test` of node:test. */
export type TestFunction = (name: string, run: () => Promise<void>) => void

/**
 * Registers the cases of the core and of the faculties that the store has, each with its own harness over empty data. Prints the cases that are
 * left out, and why. One more case fails if the store claims a faculty whose cases do not run.
 */
export function runStoreCases(
  open: () => Promise<StoreHarness>,
  test: TestFunction,
  selection: StoreSelection = {},
): void {
  const selected = selectCases(storeCases, selection)
  for (const { name, run } of selected) test(name, () => withHarness(open, run))
  test('runs the cases of the faculties that it claims, and of no other', () =>
    withHarness(open, async harness => assertSelected(await harness.open(), selected, selection)))
}

/** The cases about rows that this version cannot read, for a store whose rows other programs can write. */
export function runUnreadableCases(
  open: () => Promise<SpoilableHarness>,
  test: TestFunction,
  selection: StoreSelection = {},
): void {
  for (const { name, run } of selectCases(unreadableCases, selection)) test(name, () => withHarness(open, run))
}
