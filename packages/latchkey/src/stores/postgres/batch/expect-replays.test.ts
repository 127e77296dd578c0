import { expect, it } from 'vitest'
import type { PgResult } from '../driver.ts'
import { expectReplays } from './expect-replays.ts'

const met = (rows: number) =>
  Promise.resolve<PgResult>({ rows: Array.from({ length: rows }), rowCount: rows, command: 'SELECT' })

it('expects none until a batch has met one', async () => {
  const replays = expectReplays()
  await replays.watch(met(0))
  expect(replays.areExpected()).toBe(false)
  expect((await replays.watch(met(2))).rows).toHaveLength(2)
  expect(replays.areExpected()).toBe(true)
})

it('expects none any more when many batches in a row have met none', async () => {
  const replays = expectReplays()
  await replays.watch(met(1))
  for (let batch = 0; batch < 15; batch += 1) await replays.watch(met(0))
  expect(replays.areExpected()).toBe(true)
  await replays.watch(met(0))
  expect(replays.areExpected()).toBe(false)
})

it('expects them after a batch that was refused, because it may have waited for one', async () => {
  const replays = expectReplays()
  const refusal = new Error('canceling statement due to lock timeout')
  await expect(replays.watch(Promise.reject(refusal))).rejects.toBe(refusal)
  expect(replays.areExpected()).toBe(true)
})
