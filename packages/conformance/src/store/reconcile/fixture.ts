/** Evidence about rows, its sources, and what a case checks afterwards. */
import assert from 'node:assert/strict'
import type {
  ApplyOptions,
  Claim,
  EffectRef,
  Finding,
  FoundVerdict,
  Lookup,
  LookupClaim,
  Reconciliation,
  Steps,
  Store,
  Subject,
} from 'latchkey'
import type { StoreHarness } from '../../store-harness.ts'
import { answer, hourMs, leaseMs, notKnown, retentionMs } from '../fixture.ts'
import { charge, downstreamKey, openSteps, ownPhased, type StepsFixture, withIntent } from '../steps/fixture.ts'

export type ReconcilingStore = Store & { readonly reconciliation: Reconciliation }

export async function openReconciling(harness: StoreHarness): Promise<ReconcilingStore> {
  return reconciling(await harness.open())
}

function reconciling(store: Store): ReconcilingStore {
  assert.ok(store.reconciliation, `${store.name} says that it has reconciliation, and has none`)
  // `as`: the assertion narrows the member, not the object.
  return store as ReconcilingStore
}

/** Effects in doubt, and what settles them. */
export interface DoubtFixture {
  readonly store: ReconcilingStore
  readonly steps: Steps
}

export async function openDoubt(harness: StoreHarness): Promise<DoubtFixture> {
  const { store, steps } = await openSteps(harness)
  return { store: reconciling(store), steps }
}

export const quarantineMs: number = 3 * hourMs
export const applying: ApplyOptions = { quarantineMs, retentionMs }

type FoundOutcome = Extract<FoundVerdict, { outcome: unknown }>
export const happened: FoundOutcome = { kind: 'happened', outcome: answer('found out') }
export const declined: FoundOutcome = { kind: 'declined', outcome: answer('no funds', { status: 402 }) }
export const charged = { kind: 'happened', value: '{"id":"ch_1","text":"caf\u00e9"}' } as const
export const never = { kind: 'never-happened' } as const

let refs = 0

/** New evidence, unless a `ref` is given. */
export function finding(verdict: FoundVerdict, over: Partial<Finding> = {}): Finding {
  refs += 1
  return { source: 'ledger', ref: `finding ${refs}`, verdict, ...over }
}

/** Times of the sender's clock: they are only compared with each other. */
export const signedAtMs: number = Date.UTC(2026, 0, 1)

export function message(ref: string, signedLaterMs = 0, verdict: FoundVerdict = happened): Finding {
  return { source: 'webhook', ref, verdict, delivery: { signedAtMs: signedAtMs + signedLaterMs } }
}

export function whole({ id }: { readonly id: string }): Subject {
  return { id, effect: undefined }
}

export function chargeOf({ id }: { readonly id: string }, over: Partial<EffectRef> = {}): Subject {
  return { id, effect: { position: 0, name: 'charge', epoch: 0, ...over } }
}

/** Stores evidence, and fails unless it is new. */
export async function storeEvidence(store: ReconcilingStore, subject: Subject, found: Finding): Promise<string> {
  const result = await store.reconciliation.keep(subject, found)
  assert.equal(result.kind, 'kept', `expected the evidence to be kept, got ${result.kind}`)
  return result.evidenceId
}

/** Stores and applies evidence; returns the kind of the result. */
export async function presentEvidence(
  store: ReconcilingStore,
  subject: Subject,
  verdict: FoundVerdict,
  options: ApplyOptions = applying,
): Promise<string> {
  const evidenceId = await storeEvidence(store, subject, finding(verdict))
  return (await store.reconciliation.apply(evidenceId, options)).kind
}

/** All evidence of a row, one line each, sorted: several pieces may have the same time. */
export async function evidenceOf(store: Store, id: string): Promise<readonly string[]> {
  const { evidence } = await store.inspect(id)
  return evidence
    .map(({ source, verdict, effect, applied }) => {
      return `${source}: ${verdict}${effect === undefined ? '' : ` (${effect})`}${applied ? ', applied' : ''}`
    })
    .toSorted()
}

/** Phased work whose owner does not know whether its charge happened. */
export async function unknownCharge(fixture: StepsFixture, key: string): Promise<Claim> {
  const claim = await withIntent(fixture, key)
  assert.equal(await fixture.store.fail(claim, notKnown), 'written')
  return claim
}

/** The same row's next attempt, as unknown as the last. */
export async function unknownAgain({ store, steps }: StepsFixture, key: string, epoch: number): Promise<Claim> {
  const claim = await ownPhased(store, key)
  const intent = charge(0, { epoch, key: downstreamKey(key, epoch) })
  assert.equal(await steps.openIntent(claim, intent, leaseMs), 'written')
  assert.equal(await store.fail(claim, notKnown), 'written')
  return claim
}

/** Phased work that threw `outcomeUnknown`: no effect is open. */
export async function unknownBetweenSteps({ store }: Pick<StepsFixture, 'store'>, key: string): Promise<Claim> {
  const claim = await ownPhased(store, key)
  assert.equal(await store.fail(claim, notKnown), 'written')
  return claim
}

export const lookupLeaseMs: number = leaseMs

/** What is due now, by default for `payments.create`. */
export function lookUp(
  store: ReconcilingStore,
  over: { operation?: string; firstInMs?: number; leaseMs?: number; limit?: number } = {},
): Promise<readonly Lookup[]> {
  return store.reconciliation.lookups({
    ...{ operation: 'payments.create', firstInMs: 0, leaseMs: lookupLeaseMs, limit: 10 },
    ...over,
  })
}

export function claimOf({ id, fence, look }: LookupClaim): LookupClaim {
  return { id, fence, look }
}

/** The one look-up that is due; fails unless there is one. */
export async function onlyLookup(store: ReconcilingStore, firstInMs = 0): Promise<Lookup> {
  const [lookup, ...others] = await lookUp(store, { firstInMs })
  assert.ok(lookup, 'expected a look-up to be due, found none')
  assert.deepEqual(others, [])
  return lookup
}

/** An unknown row whose look-ups were all in vain. */
export async function givenUp(store: ReconcilingStore): Promise<Lookup> {
  const lookup = await onlyLookup(store)
  assert.equal(await store.reconciliation.giveUp(lookup, 'unresolved'), 'written')
  return lookup
}
