import { expect, it } from 'vitest'
import { lastHourOf } from './operation-figures.ts'

/** How many executions were in which bucket. */
function tookOf(counts: Readonly<Record<string, number>>, leaseMs?: number) {
  const sums = Object.entries(counts).map(([edge, count]) => ({
    ...{ operation: 'pay', metric: `execution.duration.${edge}`, count },
  }))
  return lastHourOf(sums, leaseMs).took
}

it('has no times where nothing was executed', () => {
  expect(tookOf({})).toBeUndefined()
  expect(lastHourOf([{ operation: 'pay', metric: 'reserve.replay', count: 3 }], 30_000)).toEqual({
    ...{ reserved: 0, replayed: 3, mismatched: 0, took: undefined },
  })
})

it('gives the upper edge of the bucket that the share is in', () => {
  expect(tookOf({ 20: 1 })).toMatchObject({ executions: 1, p50Ms: 20, p99Ms: 20 })
  expect(tookOf({ 10: 50, 20: 50 })).toMatchObject({ p50Ms: 10, p99Ms: 20 })
  expect(tookOf({ 10: 49, 20: 51 })).toMatchObject({ p50Ms: 20, p99Ms: 20 })
  expect(tookOf({ 10: 99, 5_000: 1 })).toMatchObject({ executions: 100, p50Ms: 10, p99Ms: 10 })
  expect(tookOf({ 10: 98, 5_000: 2 })).toMatchObject({ p50Ms: 10, p99Ms: 5_000 })
})

it('does not depend on the order of the sums', () => {
  const sums = [
    { operation: 'pay', metric: 'execution.duration.500', count: 10 },
    { operation: 'pay', metric: 'execution.duration.5', count: 90 },
  ]
  expect(lastHourOf(sums, undefined).took).toMatchObject({ p50Ms: 5, p99Ms: 500 })
})

it('says nothing of what took longer than the last edge but that it did', () => {
  expect(tookOf({ 10: 1, longer: 1 }, 30_000)).toEqual({
    ...{ executions: 2, p50Ms: 10, p99Ms: undefined, leaseUsed: undefined },
  })
})

it('compares p99 with the lease, where one lease is for the whole execution', () => {
  expect(tookOf({ 10: 1, 15_000: 0, 20_000: 1 }, 40_000)).toMatchObject({ leaseUsed: 0.5 })
  expect(tookOf({ 60_000: 1 }, 30_000)).toMatchObject({ leaseUsed: 2 })
  expect(tookOf({ 60_000: 1 })).toMatchObject({ leaseUsed: undefined })
})
