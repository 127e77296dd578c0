import { expect, it } from 'vitest'
import { fakeClock } from '../../../test/engine/fake-clock.ts'
import { recordingTelemetry } from '../../../test/engine/fixture.ts'
import type { AdminRecords, Rate } from '../../ports/faculties/admin.ts'
import { memoryStore } from '../../stores/memory/index.ts'
import { countRates } from './rates.ts'

function scene(addRates?: AdminRecords['addRates']) {
  const clock = fakeClock()
  const added: Rate[][] = []
  const add = addRates ?? (async rates => void added.push([...rates]))
  const { admin } = memoryStore({ clock })
  if (admin === undefined) throw new Error('the memory store has records for operators')
  const { telemetry, end } = countRates(recordingTelemetry(), { admin: { ...admin, addRates: add } }, clock)
  return { clock, added, telemetry, end }
}

it('adds what was counted every ten seconds, and begins again at zero', () => {
  const { clock, added, telemetry } = scene()
  telemetry.count('reserve.created', { operation: 'pay' })
  telemetry.count('reserve.created', { operation: 'pay' })
  telemetry.count('takeover', { operation: 'pay' })
  clock.advance(9_999)
  expect(added).toEqual([])
  clock.advance(1)
  telemetry.count('reserve.replay', { operation: 'refund' })
  clock.advance(10_000)
  expect(added).toEqual([
    [{ operation: 'pay', metric: 'reserve.created', count: 2 }],
    [{ operation: 'refund', metric: 'reserve.replay', count: 1 }],
  ])
})

it('has no timer where nothing was counted', () => {
  const { clock } = scene()
  expect(clock.timers()).toBe(0)
})

it('adds the rest at its end, and leaves no timer', async () => {
  const { clock, added, telemetry, end } = scene()
  telemetry.count('reserve.created', { operation: 'pay' })
  await end()
  telemetry.count('reserve.created', { operation: 'pay' })
  expect(added).toEqual([[{ operation: 'pay', metric: 'reserve.created', count: 1 }]])
  expect(clock.timers()).toBe(0)
})

it('counts more than a thousand operations together', async () => {
  const { added, telemetry, end } = scene()
  for (let n = 0; n < 1_002; n++) telemetry.count('reserve.created', { operation: `pay ${n}` })
  telemetry.count('reserve.created', { operation: 'pay 0' })
  await end()
  expect(added[0]).toHaveLength(1_001)
  expect(added[0]?.at(0)).toMatchObject({ operation: 'pay 0', count: 2 })
  expect(added[0]?.at(-1)).toMatchObject({ operation: 'others', count: 2 })
})

it('passes over a store that does not take them', async () => {
  const { telemetry, end } = scene(() => Promise.reject(new Error('away')))
  telemetry.count('reserve.created', { operation: 'pay' })
  await end()
})
