import { expect, it } from 'vitest'
import { fakeClock } from '../../../test/engine/fake-clock.ts'
import { TokenBuckets } from './token-buckets.ts'

function scene(perMinute: number) {
  const clock = fakeClock()
  return { clock, buckets: new TokenBuckets(perMinute, clock) }
}
const taken = (buckets: TokenBuckets, scope: string, times: number) =>
  Array.from({ length: times }, () => buckets.take(scope)).filter(Boolean).length

it('gives a minute of tokens at once, then one after the other', () => {
  const { clock, buckets } = scene(6)
  expect(taken(buckets, 'a', 10)).toBe(6)
  expect(buckets.nextInMs('a')).toBe(10_000)
  clock.advance(10_000)
  expect([taken(buckets, 'a', 3), buckets.nextInMs('a')]).toEqual([1, 10_000])
  clock.advance(600_000)
  expect(taken(buckets, 'a', 10)).toBe(6)
})

it('keeps scopes apart', () => {
  const { buckets } = scene(2)
  expect([taken(buckets, 'a', 5), taken(buckets, 'b', 5)]).toEqual([2, 2])
})

it('takes back what was not used, up to a full bucket', () => {
  const { buckets } = scene(2)
  buckets.giveBack('a')
  expect(taken(buckets, 'a', 5)).toBe(2)
  buckets.giveBack('a')
  expect(taken(buckets, 'a', 5)).toBe(1)
})

it('forgets the scope that asked longest ago when there are too many', () => {
  const { buckets } = scene(1)
  for (let n = 0; n < 10_000; n++) buckets.take(`scope ${n}`)
  buckets.take('scope 0')
  buckets.take('one more')
  expect([buckets.take('scope 0'), buckets.take('scope 1')]).toEqual([false, true])
})
