/** Phased work whose provider answered while the store was away: what it said is not lost, and nobody has to find it out. */
import { afterEach, beforeEach, expect, it } from 'vitest'
import { engine } from '../../../src/engine/internal.ts'
import { createLatchkey, type Latchkey } from '../../../src/engine/latchkey.ts'
import { json } from '../../../src/engine/steps/json.ts'
import type { PhasedOperation } from '../../../src/engine/operation.ts'
import type { Store } from '../../../src/ports/store.ts'
import { type BreakableStore, breakableStore } from '../breakable-store.ts'
import { eventually, executeRequest, idOf, lastAnswer, operationName, rejects, told } from '../fixture.ts'

let breakable: BreakableStore
let latchkey: Latchkey<unknown, unknown>
let charges: number

beforeEach(async () => {
  breakable = await breakableStore()
  charges = 0
  latchkey = createLatchkey({ store: breakable.store as Store, scope: () => 'acme', storeTimeoutMs: 200 })
})
afterEach(async () => {
  await latchkey.close({ timeoutMs: 1_000 })
  await breakable.close()
})

const payment = (leaseMs: number): PhasedOperation<unknown> =>
  latchkey.phased(operationName, { version: 1, leaseMs }, async x => {
    // No dedup: without its result a person would have to find out.
    const charge = await x.effect('charge', { timeoutMs: 500 }, async () => ({ id: `ch_${(charges += 1)}` }))
    return json(201, charge)
  })

const stateOf = async (key: string) => (await breakable.real.read(idOf(key)))?.state

async function resumeUntilCompleted(operation: PhasedOperation<unknown>): Promise<void> {
  const resume = async () => {
    for (const row of await breakable.real.resumable({ limit: 10 })) await operation[engine].resume(row)
    return stateOf('k')
  }
  expect(await lastAnswer(resume, 'completed')).toBe('completed')
}

it('records the value of an effect when the store is back, and the rest is resumed', async () => {
  const operation = payment(60_000)
  breakable.faults = { recordResult: rejects }
  expect(told(await operation[engine].execute(executeRequest('k'), { input: () => ({}) }))).toBe(
    'refused outcome-unknown',
  )
  breakable.faults = {}
  await resumeUntilCompleted(operation)
  expect(charges).toBe(1)
  expect(told(await operation[engine].execute(executeRequest('k'), { input: () => ({}) }))).toBe('replayed 201')
})

it('gives the value as evidence where the row was swept to unknown meanwhile', async () => {
  const operation = payment(1_000)
  breakable.faults = { recordResult: rejects, heartbeat: rejects, keep: rejects }
  expect(told(await operation[engine].execute(executeRequest('k'), { input: () => ({}) }))).toBe(
    'refused outcome-unknown',
  )
  await eventually(async () => {
    await breakable.real.sweep({ limit: 10 })
    return (await breakable.real.read(idOf('k')))?.state === 'unknown'
  })
  breakable.faults = {}
  await resumeUntilCompleted(operation)
  expect(charges).toBe(1)
  expect((await breakable.real.inspect(idOf('k'))).evidence).toMatchObject([
    { source: 'late-owner', verdict: 'happened', applied: true },
  ])
})

it('keeps that evidence in memory, too, when it was the claim that was lost first', async () => {
  const operation = payment(1_000)
  breakable.faults = { recordResult: async () => 'claim-lost' as never, keep: rejects, heartbeat: rejects }
  const answer = operation[engine].execute(executeRequest('k'), { input: () => ({}) })
  await eventually(async () => {
    await breakable.real.sweep({ limit: 10 })
    return (await breakable.real.read(idOf('k')))?.state === 'unknown'
  })
  await answer
  breakable.faults = {}
  await resumeUntilCompleted(operation)
  expect(charges).toBe(1)
})

it('stores the outcome of phased work when the store is back', async () => {
  const operation = payment(60_000)
  breakable.faults = { complete: rejects }
  expect(told(await operation[engine].execute(executeRequest('k'), { input: () => ({}) }))).toBe('executed 201 failed')
  breakable.faults = {}
  expect(await lastAnswer(() => stateOf('k'), 'completed')).toBe('completed')
  expect(charges).toBe(1)
})
