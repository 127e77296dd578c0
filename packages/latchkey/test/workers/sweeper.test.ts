import { afterEach, expect, it } from 'vitest'
import { silentTelemetry } from '../../src/ports/telemetry.ts'
import type { Workers } from '../../src/workers/index.ts'
import { present } from '../present.ts'
import { sweepOnce } from '../../src/workers/sweeper.ts'
import { claimRequest } from '../claim-request.ts'
import { eventually } from '../engine/fixture.ts'
import { scene } from './fixture.ts'

const started: Workers[] = []
afterEach(async () => {
  for (const workers of started.splice(0)) await workers.stop()
})

it('moves every dead lease by its recovery, logs it by its hash and counts it', async () => {
  const { row, clock, store, telemetry, stateOf, workers } = scene()
  const held = await row('held', 'in_progress', 'hold')
  const rerun = await row('rerun', 'in_progress', 'rerun')
  clock.leap(2_000)
  const alive = await row('alive', 'in_progress', 'hold')
  const sweeping = workers({ only: ['sweeper'], sweeper: { everyMs: 50 } })
  started.push(sweeping)
  sweeping.start()
  await eventually(() => telemetry.counted('zombie_key') === 2)
  expect([await stateOf(held), await stateOf(rerun), await stateOf(alive)]).toEqual([
    'unknown',
    'failed_retryable',
    'in_progress',
  ])
  expect(telemetry.told).toContainEqual([
    'lease expired: row moved to unknown',
    { operation: 'payments.create', identity: held, detail: 'unknown' },
  ])
  expect(telemetry.told).toContainEqual([
    'lease expired: row moved to failed_retryable',
    { operation: 'payments.create', identity: rerun, detail: 'failed_retryable' },
  ])
  expect(JSON.stringify(telemetry.told)).not.toContain('held')
  expect((await store.read(held))?.crashes).toBe(1)
})

it('works in bounded batches until no dead lease is left', async () => {
  const { row, clock, store, telemetry, stateOf } = scene()
  const ids = await Promise.all(Array.from({ length: 25 }, (_, n) => row(`k${n}`, 'in_progress')))
  clock.leap(2_000)
  const limits: number[] = []
  const counting = {
    list: store.list,
    sweep: (options: { limit: number }) => {
      limits.push(options.limit)
      return store.sweep(options)
    },
  }
  const sweep = () => sweepOnce({ store: counting, telemetry, batch: 10 })
  expect([await sweep(), await sweep(), await sweep(), await sweep()]).toEqual(['more', 'more', 'idle', 'idle'])
  expect(limits).toEqual([10, 10, 10, 10])
  expect(new Set(await Promise.all(ids.map(stateOf)))).toEqual(new Set(['unknown']))
  expect(telemetry.counted('zombie_key')).toBe(25)
})

it('counts each dead lease once when four sweepers meet', async () => {
  const { row, clock, telemetry, workers } = scene()
  await Promise.all(Array.from({ length: 50 }, (_, n) => row(`k${n}`, 'in_progress')))
  clock.leap(2_000)
  const four = Array.from({ length: 4 }, () => workers({ only: ['sweeper'], sweeper: { everyMs: 20, batch: 7 } }))
  started.push(...four)
  for (const one of four) one.start()
  await eventually(() => telemetry.counted('zombie_key') >= 50)
  await eventually(() => four.every(one => (one.health().sweeper?.turns ?? 0) > 5))
  expect(telemetry.counted('zombie_key')).toBe(50)
})

it('observes how many rows are parked when nothing is left to sweep, and asks for them only if somebody listens', async () => {
  const { store, telemetry } = scene()
  const won = await store.claim(claimRequest())
  if (won.kind !== 'won') throw new Error('the key is new')
  await store.park(won.claim, 'poison')
  await sweepOnce({ store, telemetry, batch: 10 })
  expect(telemetry.told).toContainEqual(['parked.rows', 1, {}])
  const list = () => Promise.reject(new Error('nobody asked'))
  expect(await sweepOnce({ store: { ...store, list }, telemetry: silentTelemetry, batch: 10 })).toBe('idle')
})

it('observes how many messages of consumers are parked, and sweeps all the same where it may not count them', async () => {
  const { store, telemetry } = scene()
  await sweepOnce({ store, telemetry, batch: 10 })
  expect(telemetry.told).toContainEqual(['inbox.parked', 0, {}])
  const refused = () => Promise.reject(new Error('permission denied for table inbox_parked'))
  const { store: other, telemetry: quiet } = scene()
  const inbox = { ...present(other.inbox), waiting: refused }
  expect(await sweepOnce({ store: { ...other, inbox }, telemetry: quiet, batch: 10 })).toBe('idle')
  expect(quiet.told).toContainEqual(['parked.rows', 0, {}])
})
