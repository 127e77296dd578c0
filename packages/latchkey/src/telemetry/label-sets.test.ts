import { expect, it } from 'vitest'
import { labelSets } from './label-sets.ts'

const both = { byOperation: true, detail: 'reason' }

it('makes one cell for each set of labels, and finds it again', () => {
  const sets = labelSets(both, { make: labels => ({ labels }) })
  const cell = sets.of({ operation: 'pay', detail: 'late' })
  expect(sets.of({ operation: 'pay', detail: 'late', identity: 'x', scope: 'acme' })).toBe(cell)
  expect(sets.of({ operation: 'pay', detail: 'lost' })).not.toBe(cell)
  expect([...sets.all()].map(({ labels }) => labels)).toEqual([
    { operation: 'pay', reason: 'late' },
    { operation: 'pay', reason: 'lost' },
  ])
})

it('leaves out labels that the metric does not have, and those without a value', () => {
  const labelsOf = (entry: { byOperation: boolean; detail: string | undefined }) =>
    labelSets(entry, { make: labels => labels }).of({ operation: 'pay', detail: 'late' })
  expect(labelsOf({ byOperation: false, detail: 'reason' })).toEqual({ reason: 'late' })
  expect(labelsOf({ byOperation: true, detail: undefined })).toEqual({ operation: 'pay' })
  expect(labelSets(both, { make: labels => labels }).of({})).toEqual({})
})

it('gathers what is beyond 1,000 sets in one', () => {
  const sets = labelSets(both, { make: labels => ({ labels }) })
  for (let n = 0; n < 3_000; n++) sets.of({ operation: 'pay', detail: `reason ${n}` })
  const rest = sets.of({ operation: 'refund', detail: 'another' })
  expect(rest.labels).toEqual({ operation: 'other', reason: 'other' })
  expect([...sets.all()]).toHaveLength(1_001)
  expect(sets.of({ operation: 'pay', detail: 'reason 7' }).labels).toEqual({ operation: 'pay', reason: 'reason 7' })
})
