import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createLatchkey, json, singleTenant } from 'latchkey'
import { createWorkers } from 'latchkey/workers'
import { eventually, recordingTelemetry } from '../engine/fixture.ts'
import { openPlace, type Place } from '../processes/database.ts'

const directory = mkdtempSync(join(tmpdir(), 'latchkey-relaying-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

describe.each([
  ['SQLite', () => openPlace(join(directory, 'shop.db'))],
  ['the memory store', () => openPlace('memory:relaying')],
])('on %s', (_, open) => {
  let place: Place
  beforeAll(async () => {
    place = await open()
    await place.migrate()
  })
  afterAll(() => place.close())

  it('delivers what phased work appended, and the reaper deletes it when it was kept long enough', async () => {
    const telemetry = recordingTelemetry()
    const latchkey = createLatchkey({ store: place.store, scope: singleTenant, telemetry })
    const pay = latchkey.phased('pay', { version: 1 }, async (x, input: { order: number }) => {
      await x.phase('record', tx => x.outbox.append(tx, { topic: 'receipts', aggregate: 'one', payload: input }))
      return json(201, input)
    })
    const got: string[] = []
    const receipts = {
      name: 'receipts',
      async deliver({ payload }: { payload: Uint8Array }) {
        got.push(new TextDecoder().decode(payload))
        return { kind: 'delivered' as const }
      },
    }
    const workers = createWorkers(latchkey, {
      relay: { targets: { receipts }, everyMs: 20 },
      reaper: { everyMs: 20, keepDeliveredMs: 1 },
    })
    expect(Object.keys(workers.health())).toEqual(['sweeper', 'resumer', 'relay', 'reaper'])
    workers.start()
    for (let order = 1; order <= 5; order++) await pay.run({ scope: 'acme', key: `k${order}`, input: { order } })
    await eventually(() => got.length === 5)
    expect(got).toEqual([1, 2, 3, 4, 5].map(order => JSON.stringify({ order })))
    await eventually(() => telemetry.counted('ttl_pruned') === 5)
    expect(await place.store.outbox?.lag()).toMatchObject({ waiting: 0, parked: 0 })
    expect(await workers.drain()).toEqual({ drained: true })
    await workers.stop()
    for (const health of Object.values(workers.health())) expect(health).toMatchObject({ failures: 0, running: false })
  })

  it('observes what waits in the outbox, once in half a minute, however many turns there are', async () => {
    const telemetry = recordingTelemetry()
    const latchkey = createLatchkey({ store: place.store, scope: singleTenant, telemetry })
    const pay = latchkey.phased('pay', { version: 1 }, async x => {
      await x.phase('record', tx => x.outbox.append(tx, { topic: 'nowhere', payload: {} }))
      return json(201, {})
    })
    for (const key of ['waits', 'waits too']) await pay.run({ scope: 'acme', key, input: 1 })
    const workers = createWorkers(latchkey, { only: ['relay'], relay: { targets: {}, everyMs: 5 } })
    workers.start()
    await eventually(() => telemetry.counted('worker.turn') > 5)
    await workers.stop()
    const observed = telemetry.told.filter(one => Array.isArray(one) && String(one[0]).startsWith('outbox.'))
    expect(observed).toEqual([
      ['outbox.oldest_age', expect.any(Number), {}],
      ['outbox.waiting', 2, {}],
      ['outbox.held_back', 0, {}],
      ['outbox.parked', 0, {}],
    ])
    await latchkey.close()
  })
})
