import { expect, it } from 'vitest'
import { countAllocations } from './allocation.ts'

it('counts what was allocated, whether it was collected meanwhile or not', () => {
  const allocatedIn = (rounds: number) => {
    const end = countAllocations()
    for (let round = 0; round < rounds; round++) kept = Array.from({ length: 1_000 }, (_, n) => [round, n])
    return end()
  }
  let kept: unknown
  allocatedIn(500)
  // An array of two takes at least 32 bytes: the longer round allocates many times the young generation.
  const [few, many] = [allocatedIn(300), allocatedIn(3_000)]
  expect(kept).toHaveLength(1_000)
  expect(few).toBeGreaterThan(300 * 1_000 * 32)
  expect(many / few).toBeGreaterThan(9)
  expect(many / few).toBeLessThan(11)
})
