import { expect, it } from 'vitest'
import { expectReplays } from './claim.ts'

it('expects none until a batch has met one', () => {
  const replays = expectReplays()
  replays.met(0)
  expect(replays.areExpected()).toBe(false)
  replays.met(2)
  expect(replays.areExpected()).toBe(true)
})

it('expects none any more when many batches in a row have met none', () => {
  const replays = expectReplays()
  replays.met(1)
  for (let batch = 0; batch < 15; batch += 1) replays.met(0)
  expect(replays.areExpected()).toBe(true)
  replays.met(0)
  expect(replays.areExpected()).toBe(false)
})

it('expects them after a batch that was refused, because it may have waited for one', () => {
  const replays = expectReplays()
  replays.refused()
  expect(replays.areExpected()).toBe(true)
})
