import { setTimeout as pause } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { json } from '../../src/index.ts'
import { inbox } from '../../src/inbox/index.ts'
import type { Store } from '../../src/ports/store.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'
import { brief, recordingTelemetry } from '../engine/fixture.ts'
import { newConsumer, order, quiet } from './fixture.ts'

const limitMs = 20_000

it('renews the lease of the broker after that of the row, while a guarded message runs', async () => {
  const store = memoryStore()
  const told: string[] = []
  const watched: Store = {
    ...store,
    async heartbeat(claim, leaseMs) {
      const renewed = await store.heartbeat(claim, leaseMs)
      told.push('row')
      return renewed
    },
  }
  const operation = quiet(watched).guarded('orders.book', { ...brief, onFailure: 'hold' })
  const { receive } = inbox(operation, { consumer: newConsumer() })
  const handler = () => expect.poll(() => told.length, { timeout: limitMs }).toBeGreaterThanOrEqual(4)
  await receive(order('1'), handler, { onBeat: () => told.push('broker') })
  expect(told.slice(0, 4)).toEqual(['row', 'broker', 'row', 'broker'])
  const before = told.length
  await pause(3 * brief.leaseMs)
  expect(told.length - before).toBeLessThanOrEqual(1)
})

it('renews no lease of the broker once the claim is lost, and aborts the handler', async () => {
  const store = memoryStore()
  const lost: Store = { ...store, heartbeat: async () => 'claim-lost' }
  const operation = quiet(lost).guarded('orders.book', { ...brief, onFailure: 'hold' })
  const { receive } = inbox(operation, { consumer: newConsumer() })
  let beats = 0
  const handler = ({ signal }: { signal: AbortSignal }) =>
    new Promise<void>(resolve => signal.addEventListener('abort', () => resolve()))
  await receive(order('1'), handler, { onBeat: () => void (beats += 1) })
  await pause(2 * brief.leaseMs)
  expect(beats).toBe(0)
})

it('renews the lease of the broker while a phased message runs, and stops with it', async () => {
  const latchkey = quiet(memoryStore())
  const consumer = newConsumer()
  let beats = 0
  const onBeat = () => void (beats += 1)
  const twoBeats = () => expect.poll(() => beats, { timeout: limitMs }).toBeGreaterThanOrEqual(2)
  const phased = latchkey.phased('orders.ship', { version: 1, leaseMs: 300 }, async x => {
    // What poll resolves with is no JSON.
    await x.effect('wait', { timeoutMs: limitMs }, async () => (await twoBeats(), null))
    return json(201, {})
  })
  const { receive } = inbox(phased, { consumer, input: ({ data }) => data })
  expect(await receive(order('1'), { onBeat })).toEqual({ kind: 'done' })
  const before = beats
  await pause(500)
  expect(beats).toBe(before)
})

it('beats for an atomic message as often as it is told, and for no other kind', async () => {
  const latchkey = quiet(memoryStore())
  const options = { consumer: newConsumer(), beatMs: 20 }
  let beats = 0
  const handler = () => expect.poll(() => beats, { timeout: limitMs }).toBeGreaterThanOrEqual(3)
  const { receive } = inbox(latchkey.atomic('orders.book'), options)
  expect(await receive(order('1'), handler, { onBeat: () => void (beats += 1) })).toEqual({ kind: 'done' })
  expect(() => inbox(latchkey.guarded('orders.charge', { onFailure: 'hold' }), options)).toThrow(
    'a guarded one beats every third of its leaseMs',
  )
})

it('goes on with a message whose onBeat fails, and reports it', async () => {
  const telemetry = recordingTelemetry()
  const operation = quiet(memoryStore(), { telemetry }).guarded('orders.book', { ...brief, onFailure: 'hold' })
  const { receive } = inbox(operation, { consumer: newConsumer() })
  const reported = () => JSON.stringify(telemetry.told).split('onBeat failed').length - 1
  let beats = 0
  const onBeat = () => {
    beats += 1
    if (beats === 1) throw new Error('the channel is closed')
    return Promise.reject(new Error('the channel is closed'))
  }
  const handler = () => expect.poll(reported, { timeout: limitMs }).toBeGreaterThanOrEqual(2)
  expect(await receive(order('1'), handler, { onBeat })).toEqual({ kind: 'done' })
})
