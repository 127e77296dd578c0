import { expect, it } from 'vitest'
import { areUuids, inOrder, isUuid } from './columns.ts'

const [first, second, third] = [
  '0fffffff-ffff-4fff-8fff-ffffffffffff',
  '9a000000-0000-4000-8000-000000000000',
  'a9000000-0000-4000-8000-000000000000',
] as const

it('puts what a batch sends in the order in which the server compares ids', () => {
  const items = [third, first, second].map(id => ({ id }))
  expect(inOrder(items, ({ id }) => id).map(({ id }) => id)).toEqual([first, second, third])
  expect(items[0]?.id).toBe(third)
})

it('lets only ids into a batch that are written as the server writes them', () => {
  const written = { id: first, claimId: second }
  expect(areUuids(written)).toBe(true)
  expect(isUuid(second.toUpperCase())).toBe(true)
  for (const strange of [second.toUpperCase(), second.replaceAll('-', ''), `{${second}}`, `${second}\n`]) {
    expect(areUuids({ ...written, id: strange })).toBe(false)
    expect(areUuids({ ...written, claimId: strange })).toBe(false)
  }
})
