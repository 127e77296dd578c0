/**
 * The model-based property of every store: whatever callers do, in whatever order, store and model agree after each step.
 *
 *   it('agrees with the model', () => checkStoreModel(openHarness, { numRuns: 50 }))
 */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import type { StoreHarness } from '@latchkey/conformance'
import type { Real } from './command.ts'
import { storeCommands } from './store-commands.ts'
import { emptyModel, type StoreModel } from './store-model.ts'
import { idOf, keys } from './store-names.ts'

export interface PropertyOptions {
  /** How many sequences are tried. A thousand in memory take seconds; a real server wants fewer. */
  readonly numRuns: number
  /** The most commands in one sequence. Default 60: long enough for several generations of one row. */
  readonly maxCommands?: number
  /** Repeats a failure: fast-check prints it. */
  readonly seed?: number
}

export async function checkStoreModel(
  open: () => Promise<StoreHarness>,
  { numRuns, maxCommands = 60, seed }: PropertyOptions,
): Promise<void> {
  const commands = fc.commands([...storeCommands], { maxCommands, size: 'max' })
  const property = fc.asyncProperty(commands, async sequence => {
    const harness = await open()
    const model = emptyModel()
    const real: Real = { harness, store: await harness.open() }
    try {
      await fc.asyncModelRun(() => ({ model, real }), sequence)
      await compareAudit(model, real)
    } finally {
      await harness.close()
    }
  })
  await fc.assert(property, { numRuns, ...(seed === undefined ? {} : { seed }) })
}

async function compareAudit(model: StoreModel, { store }: Real): Promise<void> {
  for (const key of keys) {
    const { audit } = await store.inspect(idOf(key))
    const acts = model.acts.filter(entry => entry.key === key).map(entry => entry.act)
    assert.deepEqual(
      audit.map(entry => entry.act),
      acts,
    )
  }
}
