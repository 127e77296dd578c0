import { expect, it } from 'vitest'
import { reapOnce } from '../../src/workers/reaper.ts'
import { eventually } from '../engine/fixture.ts'
import { scene } from './fixture.ts'

it('deletes what is finished and past its retention, and nothing else, however old', async () => {
  const { row, clock, telemetry, stateOf, workers } = scene()
  const gone = [await row('done', 'completed'), await row('failed', 'failed_retryable')]
  const kept = [
    await row('unknown', 'unknown'),
    await row('held', 'in_progress', 'hold'),
    await row('rerun', 'in_progress', 'rerun'),
  ]
  clock.leap(24 * 3_600_000)
  const young = await row('young', 'completed')
  const reaping = workers({ only: ['reaper'], reaper: { everyMs: 20 } })
  reaping.start()
  await eventually(() => telemetry.counted('ttl_pruned') === 2 && (reaping.health().reaper?.turns ?? 0) > 3)
  await reaping.drain()
  expect(await Promise.all(gone.map(stateOf))).toEqual([undefined, undefined])
  expect(await Promise.all(kept.map(stateOf))).toEqual(['unknown', 'in_progress', 'in_progress'])
  expect(await stateOf(young)).toBe('completed')
  expect(telemetry.counted('ttl_pruned')).toBe(2)
})

it('works in bounded batches, and rests between full ones', async () => {
  const { row, clock, store, telemetry, workers } = scene()
  for (let n = 0; n < 25; n++) await row(`k${n}`, 'completed')
  clock.leap(3_600_000)
  const reap = () => reapOnce({ store, telemetry, batch: 10, keepDeliveredMs: 1_000, keepReceivedMs: 1_000 })
  expect(await reap()).toBe('more')
  expect(telemetry.counted('ttl_pruned')).toBe(10)

  const reaping = workers({ only: ['reaper'], reaper: { batch: 10, pauseMs: 60_000 } })
  reaping.start()
  await eventually(() => reaping.health().reaper?.turns === 1)
  expect(telemetry.counted('ttl_pruned')).toBe(20)
  await reaping.drain()
  expect(await reap()).toBe('idle')
  expect(telemetry.counted('ttl_pruned')).toBe(25)
})
