import { expect, it } from 'vitest'
import { figure, median, pairwise, quantile } from './statistics.ts'

it('takes the middle, or the mean of the two middle ones', () => {
  expect(median([3, 1, 2])).toBe(2)
  expect(median([4, 1, 3, 2])).toBe(2.5)
  expect(median([])).toBeNaN()
})

it('says how far the repetitions lie apart', () => {
  expect(figure([0.8, 0.7, 0.9], '×', 'a ratio')).toEqual({
    value: 0.8,
    min: 0.7,
    max: 0.9,
    unit: '×',
    what: 'a ratio',
  })
})

it('compares repetition with repetition', () => {
  expect(pairwise([10, 30], [20, 40])).toEqual([0.5, 0.75])
  expect(pairwise([10], [4], (a, b) => a - b)).toEqual([6])
  expect(pairwise([10, 30], [20])[1]).toBeNaN()
})

it('finds a quantile in sorted values', () => {
  const hundred = Array.from({ length: 100 }, (_, n) => n + 1)
  expect(quantile(hundred, 0.5)).toBe(51)
  expect(quantile(hundred, 0.99)).toBe(100)
})
