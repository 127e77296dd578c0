/** A store with phased work on it: its journal, and one phase as the engine runs it. */
import assert from 'node:assert/strict'
import type { Claim, ClaimRequest, Intent, OwnerResult, Phases, Step, Steps, Store } from 'latchkey'
import type { StoreHarness } from '../../store-harness.ts'
import { open, type AtomicFixture } from '../atomic/fixture.ts'
import { leaseMs, newClaimId, own, request, uuidOf } from '../fixture.ts'

export interface StepsFixture {
  readonly store: Store
  readonly steps: Steps
}

export async function openSteps(harness: StoreHarness): Promise<StepsFixture> {
  const store = await harness.open()
  assert.ok(store.steps, `${store.name} says that it has steps, and has none`)
  return { store, steps: store.steps }
}

export interface PhasedFixture extends AtomicFixture, StepsFixture {
  readonly phases: Phases<unknown>
}

export async function openPhased(harness: StoreHarness): Promise<PhasedFixture> {
  const fixture = await open(harness)
  const { name, steps, phases } = fixture.store
  assert.ok(steps && phases, `${name} says that it has phases, and has none`)
  return { ...fixture, steps, phases }
}

export const work = { version: 3, input: '{"amount":7,"text":"caf\u00e9 \\u0000 \ud83d\udcb6"}' } as const

export function phasedRequest(key: string, over: Partial<ClaimRequest> = {}): ClaimRequest {
  return request(key, { recovery: 'resume', work, ...over })
}

/** The request of a worker that found the row: it has no input. */
export function resumeRequest(key: string, over: Partial<ClaimRequest> = {}): ClaimRequest {
  return request(key, { recovery: 'resume', ...over })
}

export function ownPhased(store: Store, key: string, over: Partial<ClaimRequest> = {}): Promise<Claim> {
  return own(store, key, { recovery: 'resume', work, ...over })
}

export interface PhaseOptions {
  readonly position?: number
  readonly name?: string
  readonly result?: string | undefined
  /** Written to the application's table by the work. */
  readonly value?: string
  readonly end?: 'commit' | 'rollback'
  readonly leaseMs?: number
}

/** `claim-lost` by either check: rolled back. */
export async function runPhase(
  { transactor, phases, business }: PhasedFixture,
  claim: Claim,
  { position = 0, name = 'record', result, value = 'row', end = 'commit', leaseMs: lease = leaseMs }: PhaseOptions = {},
): Promise<OwnerResult> {
  let written: OwnerResult = 'claim-lost'
  await transactor.transaction(async tx => {
    written = await phases.enterPhase(tx, claim)
    if (written === 'claim-lost') return 'rollback'
    await business.insert(tx, value)
    written = await phases.recordPhase(tx, claim, { position, name, value: result }, lease)
    return written === 'claim-lost' ? 'rollback' : end
  })
  return written
}

export interface ChargeOptions {
  readonly epoch?: number
  readonly windowMs?: number
  readonly name?: string
  readonly key?: string
}

export function charge(position: number, over: ChargeOptions = {}): Intent {
  const { epoch = 0, windowMs, name = 'charge', key = newClaimId() } = over
  return { position, name, epoch, key, windowMs }
}

/** The downstream key of the charge of a row. */
export function downstreamKey(key: string, epoch = 0): string {
  return uuidOf(`downstream ${key} charge ${epoch}`)
}

/** An effect that is done: what a journal has of it is what it has of a phase, except for its kind. */
export async function finishEffect(
  { steps }: Pick<StepsFixture, 'steps'>,
  claim: Claim,
  { position = 0, name = 'record', result }: Pick<PhaseOptions, 'position' | 'name' | 'result'> = {},
): Promise<OwnerResult> {
  const opened = await steps.openIntent(claim, charge(position, { name }), leaseMs)
  if (opened === 'claim-lost') return opened
  return steps.recordResult(claim, { position, value: result }, leaseMs)
}

/** A row whose owner opened an intent. */
export async function withIntent(
  { store, steps }: StepsFixture,
  key: string,
  windowMs?: number,
  over: Partial<ClaimRequest> = {},
): Promise<Claim> {
  const claim = await ownPhased(store, key, over)
  const named = { key: downstreamKey(key) }
  const intent = charge(0, windowMs === undefined ? named : { ...named, windowMs })
  assert.equal(await steps.openIntent(claim, intent, leaseMs), 'written')
  return claim
}

export async function stepsOf(steps: Steps, id: string): Promise<readonly Step[]> {
  const journal = await steps.readJournal(id)
  assert.ok(journal?.steps, `expected a journal for ${id} that can be read`)
  return journal.steps
}

/** The first step, as far as a journal shows it, in one line. */
export async function firstStep(steps: Steps, id: string): Promise<string> {
  const [step] = await stepsOf(steps, id)
  assert.ok(step, `expected a step of ${id}, found none`)
  return `${step.state} ${step.epoch}${step.repeatable ? ' repeatable' : ''}`
}

/** Claims that resemble the owner's and are not. */
export function impostors(claim: Claim): readonly Claim[] {
  return [
    { ...claim, fence: claim.fence + 1 },
    { ...claim, fence: claim.fence - 1 },
    { ...claim, claimId: newClaimId() },
    { ...claim, id: newClaimId() },
  ]
}
