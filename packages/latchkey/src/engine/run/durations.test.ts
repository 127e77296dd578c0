import { describe, expect, it } from 'vitest'
import { createDurations, durationBuckets } from './durations.ts'

function after(...took: readonly number[]) {
  const durations = createDurations()
  for (const ms of took) durations.add('payments.create', ms)
  return (elapsedMs = 0) => durations.leftMs('payments.create', elapsedMs)
}

it('is a second without history, also where another operation has one', () => {
  const durations = createDurations()
  expect(durations.leftMs('payments.create', 0)).toBe(1_000)
  durations.add('exports.create', 60_000)
  expect(durations.leftMs('payments.create', 0)).toBe(1_000)
})

it('is what the operation took, minus what has elapsed, and never under a second', () => {
  const left = after(8_000)
  expect([0, 3_000, 7_500, 60_000].map(left)).toEqual([8_000, 5_000, 1_000, 1_000])
  expect(after(20)()).toBe(1_000)
  expect(after(2_000.2)()).toBe(2_001)
})

it('is the 95th of a hundred shares, not the worst', () => {
  const twenty = Array.from({ length: 20 }, (_, at) => (at + 1) * 1_000)
  expect(after(...twenty)()).toBe(19_000)
  expect(after(...twenty.toReversed())()).toBe(19_000)
  expect(after(3_000, 9_000)()).toBe(9_000)
})

it('forgets all but the last 128', () => {
  const old = Array.from({ length: 300 }, () => 60_000)
  const recent = Array.from({ length: 128 }, () => 2_000)
  expect(after(...old, ...recent.slice(1))()).toBe(2_000)
  expect(after(...old, ...recent.slice(0, 120))()).toBe(60_000)
  expect(after(...old, ...recent, ...old.slice(0, 6))()).toBe(2_000)
  expect(after(...old, ...recent, ...old.slice(0, 7))()).toBe(60_000)
})

it('knows the 99th of a hundred shares once there are a hundred executions', () => {
  const durations = createDurations()
  const add = (count: number, ms: number) => {
    for (let n = 0; n < count; n++) durations.add('payments.create', ms)
  }
  expect(durations.p99Ms('payments.create')).toBeUndefined()
  add(99, 10)
  expect(durations.p99Ms('payments.create')).toBeUndefined()
  add(28, 10)
  add(1, 5_000)
  expect(durations.p99Ms('payments.create')).toBe(10)
  add(1, 5_000)
  expect(durations.p99Ms('payments.create')).toBe(5_000)
})

it('follows what is measured after it was asked', () => {
  const durations = createDurations()
  durations.add('payments.create', 2_000)
  expect(durations.leftMs('payments.create', 0)).toBe(2_000)
  durations.add('payments.create', 9_000)
  expect(durations.leftMs('payments.create', 0)).toBe(9_000)
})

describe('the buckets that the fleet adds up', () => {
  const bucketsOf = (...took: readonly number[]) => {
    const counted: string[] = []
    const durations = createDurations((operation, metric) => void counted.push(`${operation} ${metric}`))
    for (const ms of took) durations.add('pay', ms)
    return counted
  }

  it('hold a duration under the first edge that it does not exceed', () => {
    expect(bucketsOf(0, 0.4, 1, 1.01, 50, 50.1, 29_999, 30_001)).toEqual([
      'pay execution.duration.1',
      'pay execution.duration.1',
      'pay execution.duration.1',
      'pay execution.duration.2',
      'pay execution.duration.50',
      'pay execution.duration.100',
      'pay execution.duration.30000',
      'pay execution.duration.60000',
    ])
  })

  it('hold what is longer than an hour in the last one', () => {
    expect(bucketsOf(3_600_000, 3_600_001, Number.NaN)).toEqual([
      'pay execution.duration.3600000',
      'pay execution.duration.longer',
      'pay execution.duration.longer',
    ])
  })

  it('rise, and are few', () => {
    const edges = durationBuckets.map(({ upToMs }) => upToMs)
    expect(edges).toEqual(edges.toSorted((left, right) => left - right))
    expect(new Set(edges).size).toBe(20)
  })
})
