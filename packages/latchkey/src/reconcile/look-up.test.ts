import { describe, expect, it } from 'vitest'
import { nextLookUpMs } from './look-up.ts'

describe('the wait before the next look-up', () => {
  const backoffMs = [1_000, 2_000, 4_000]

  it('is the next of the backoff, shortened by at most a fifth, and then nobody is asked any more', () => {
    const next = (tries: number, random: number) =>
      nextLookUpMs(backoffMs, { tries, quarantineLeftMs: undefined, random })
    expect([next(1, 0), next(2, 0), next(3, 0)]).toEqual([2_000, 4_000, 'give-up'])
    expect(next(1, 0.999)).toBeGreaterThanOrEqual(1_600)
  })

  it('ends with the quarantine at the latest after an early negative, also when the backoff is exhausted', () => {
    const next = (tries: number, quarantineLeftMs: number) =>
      nextLookUpMs(backoffMs, { tries, quarantineLeftMs, random: 0 })
    expect(next(1, 500)).toBe(501)
    expect(next(1, 60_000)).toBe(2_000)
    expect(next(3, 60_000)).toBe(60_001)
    expect(next(3, -5)).toBe(1)
  })
})
