/** What every command on a store is made of: an input, what the store does with it, and a comparison with the model. */
import assert from 'node:assert/strict'
import fc, { type AsyncCommand } from 'fast-check'
import type { StoreHarness } from '@latchkey/conformance'
import type { Actor } from '../../src/engine/rules/transitions.ts'
import type { Outcome } from '../../src/ports/outcome.ts'
import type { Claim, Store } from '../../src/ports/store.ts'
import { isOld } from './settle-model.ts'
import { viewOfJournal, viewOfModel } from './journal-model.ts'
import { assertLegal } from './legal-transitions.ts'
import { view, viewOf } from './row-view.ts'
import type { ModelClaim, StoreModel } from './store-model.ts'
import { idOf, keys, text } from './store-names.ts'
import { assertTrail, trailBefore } from './trail.ts'

export interface Real {
  readonly harness: StoreHarness
  store: Store
}

export type StoreCommand = AsyncCommand<StoreModel, Real>

/**
 * Time moves in whole ticks and every span ends in the middle of one, so that a server whose clock runs on by itself, by
 * less than half a tick, never disagrees with the model about what has run out.
 */
export const tickMs = 10 * 60_000
export const halfTicks = (halves: number) => (halves * tickMs) / 2
export const spans = fc.constantFrom(1, 3, 5, 9).map(halfTicks)
export const key = fc.constantFrom(...keys)
export const answerOf = (body: string): Outcome => ({ status: 200, headers: [], body: text(body), version: 1 })
export const act = { by: 'on-call', reason: 'checked with the provider' }

/** Mostly the claim as it was granted; sometimes with what a confused or stale owner would send. */
export const pick = fc.record({
  nth: fc.nat({ max: 30 }),
  spoil: fc.constantFrom<string>('no', 'no', 'no', 'no', 'fence', 'claimId'),
})
type Pick = { readonly nth: number; readonly spoil: string }

export function claimFrom(model: StoreModel, { nth, spoil }: Pick): ModelClaim {
  const claim = model.claims.at(-1 - (nth % model.claims.length))
  assert.ok(claim)
  if (spoil === 'fence') return { ...claim, fence: claim.fence + 1 }
  return spoil === 'claimId' ? { ...claim, claimId: 'nobody' } : claim
}

export const real = (claim: ModelClaim): Claim => ({
  id: idOf(claim.key),
  fence: claim.fence,
  claimId: idOf(claim.claimId),
})

/** After every command the store and the model show the same rows, those that were not touched included. */
async function compare(model: StoreModel, store: Store): Promise<void> {
  const names = new Map(model.claims.map(claim => [idOf(claim.claimId), claim.claimId]))
  for (const name of keys) {
    const record = await store.read(idOf(name))
    if (store.traits.fence === 'rising') learnFence(model, name, record?.fence)
    const shown = viewOf(record, claimId => names.get(claimId) ?? `unheard of: ${claimId}`)
    assert.deepEqual(shown, view(model, name), `row ${name}`)
    await compareEvidence(model, store, name)
    if (store.steps === undefined) continue
    const journal = viewOfJournal(await store.steps.readJournal(idOf(name)))
    assert.deepEqual(journal, viewOfModel(model.rows.get(name)?.journal, model.nowMs), `journal ${name}`)
  }
}

/** A fence that is seeded from time cannot be foreseen: it is learned at the first sight of a grant, and must be above those before. */
function learnFence(model: StoreModel, name: string, fence: number | undefined): void {
  const row = model.rows.get(name)
  const before = model.fences.get(name)
  if (row === undefined || fence === undefined || before?.claimId === row.claimId) return
  assert.ok(fence > (before?.fence ?? 0), `the fence of ${name} rises above ${before?.fence}: ${fence}`)
  row.fence = fence
  model.fences.set(name, { claimId: row.claimId, fence })
  const at = model.claims.findIndex(({ claimId }) => claimId === row.claimId)
  model.claims[at] = { key: name, claimId: row.claimId, fence }
}

/** What the store notes itself, and what becomes of the evidence of an ended generation, is its own affair. */
async function compareEvidence(model: StoreModel, store: Store, key: string): Promise<void> {
  const pieces = model.evidence.pieces.filter(piece => piece.key === key)
  if (pieces.some(piece => isOld(model, piece))) return
  const { evidence } = await store.inspect(idOf(key))
  const kept = evidence.filter(({ source }) => source === 'ledger' || source === 'webhook')
  const line = (each: { source: string; verdict: string; applied: boolean }) =>
    `${each.source} ${each.verdict} ${each.applied}`
  assert.deepEqual(kept.map(line).toSorted(), pieces.map(line).toSorted(), `evidence of ${key}`)
}

interface Step<Input> {
  readonly name: string
  /** Who acts: what it does to a row must be theirs by the table of transitions. Absent: it does several things, and checks each. */
  readonly by?: readonly Actor[]
  readonly input: fc.Arbitrary<Input>
  /** False: the command makes no sense now and is left out. */
  readonly when?: (model: StoreModel, input: Input) => boolean
  readonly run: (model: StoreModel, real: Real, input: Input) => Promise<void>
}

export function step<Input>({ name, by, input, when, run }: Step<Input>): fc.Arbitrary<StoreCommand> {
  return input.map(value => ({
    check: model => when?.(model, value) ?? true,
    run: async (model, real) => {
      const before = await trailBefore(model, real.store)
      await run(model, real, value)
      await compare(model, real.store)
      if (by === undefined) return
      assertLegal(before.standings, model, by)
      await assertTrail(before, model, real.store)
    },
    toString: () => `${name} ${JSON.stringify(value)}`,
  }))
}

export const advance: fc.Arbitrary<StoreCommand> = step({
  name: 'advance',
  by: [],
  input: fc.constantFrom(1, 1, 2, 3, 5),
  async run(model, { harness }, ticks) {
    model.nowMs += ticks * tickMs
    await harness.advance(ticks * tickMs)
  },
})

/** Several commands as one, so that what is rare by chance is common: rows that are unknown, expired or gone. */
export function inTurn(...steps: readonly fc.Arbitrary<StoreCommand>[]): fc.Arbitrary<StoreCommand> {
  return fc.tuple(...steps).map(commands => ({
    check: () => true,
    run: async (model, real) => {
      for (const command of commands) if (command.check(model)) await command.run(model, real)
    },
    toString: () => commands.join(', then '),
  }))
}

export const latest = fc.constant({ nth: 0, spoil: 'no' })
export const hasClaims = (model: StoreModel) => model.claims.length > 0
export function agrees(actual: string, foreseen: string): void {
  if (foreseen !== 'open') assert.equal(actual, foreseen)
}
