/**
 * Real engines and workers on a model of a database, in virtual time, under every fault that a seed deals out. A seed that
 * failed is repeated alone by LATCHKEY_SEED=n; LATCHKEY_SEEDS=n asks for more of them, LATCHKEY_SEEDS_FROM=n for others.
 */
import { describe, expect, it } from 'vitest'
import { simulateMany } from './many.ts'
import { simulate } from './simulate.ts'

const { LATCHKEY_SEED: only, LATCHKEY_SEEDS: seeds = '1500', LATCHKEY_SEEDS_FROM: from = '1' } = process.env
const timeLimitMs = 3_600_000

/** A set of seeds that never meets one of these proves less than it seems to. */
const mustBeMet = [
  'a process died',
  'a provider recognised a key',
  'a reply was replayed',
  'a forged webhook got 400',
  'a recorded webhook got 400',
  'a webhook was taken',
  'a webhook was given up',
  'work past its deadline was answered',
  'a replaced owner began to run',
  'phased work was resumed after a finished step',
  'claim_lost ',
  'outcome.store_failed ',
  'parked definition-changed',
  'parked poison',
  'parked unresolved',
  'refused key-expired',
  'reconcile.failed claim-lost',
  'reconcile.failed timeout',
  'reconcile.resolved kept',
  'reconcile.resolved late-owner',
  'reconcile.resolved look-up',
  'reconcile.resolved webhook',
  'reserve.key_misuse ',
  'reserve.after_expiry ',
  'store.error read after commit',
  'store.error result',
  'late owner: complete unknown → completed',
  'late owner: fail unknown → failed_retryable',
  'late owner: fail unknown → pending',
  'late owner: apply unknown → pending',
  'operator: settle unknown → pending',
  'operator: unpark unknown → unknown',
  'reconciler: apply unknown → completed',
  'reconciler: apply unknown → failed_retryable',
  'reconciler: apply unknown → pending',
  'reconciler: give-up unknown → unknown',
  'request: enqueue none → pending',
  'request: enqueue completed → pending',
  'request: claim pending → in_progress',
  'reaper: reap completed → completed',
  'operator: settle unknown → completed',
  'operator: settle unknown → failed_retryable',
  'operator: unpark failed_retryable → failed_retryable',
  'owner: fail in_progress → unknown',
  'owner: release in_progress → failed_retryable',
  'request: claim in_progress → in_progress',
  'request: claim completed → in_progress',
  'sweeper: sweep in_progress → unknown',
  'sweeper: sweep in_progress → failed_retryable',
  'reaper: reap completed → none',
]

describe.runIf(only === undefined)('many seeds', () => {
  it(
    'keep every rule, and meet everything that can happen',
    async () => {
      const { failure, seen } = await simulateMany({ from: Number(from), seeds: Number(seeds) })
      expect(failure, failure).toBeUndefined()
      if (Number(seeds) >= 10_000) expect(mustBeMet.filter(what => !seen.has(what))).toEqual([])
    },
    timeLimitMs,
  )
})

describe('a seed', () => {
  it('decides everything: the same again is the same', async () => {
    const [first, second] = [await simulate(7, { traced: true }), await simulate(7, { traced: true })]
    expect(first.trace.length).toBeGreaterThan(100)
    expect(second.trace).toEqual(first.trace)
  })

  if (only !== undefined) {
    it('keeps every rule', async () => {
      const { failure } = await simulateMany({ from: Number(only), seeds: 1 })
      expect(failure, failure).toBeUndefined()
    })
  }
})
