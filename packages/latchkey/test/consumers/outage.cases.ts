/** A store that dies under a running consumer: nothing more is taken until it is back, nothing is lost, and everything happens once. */
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest'
import { describeOwnPostgres } from '../../../../test/servers/describe-postgres.ts'
import { createLatchkey, silentTelemetry, singleTenant } from '../../src/index.ts'
import { openPlace, type Place } from '../processes/database.ts'
import { type BrokerName, brokers } from './brokers/all.ts'

const messages = 60
const limitMs = 120_000
const awayMs = 4_000
const backoffMs = 500
const armed = Symbol.for('latchkey.faultPoint')
const queue = { name: 'outage-atomic', leaseMs: 2_000 }
const ids = Array.from({ length: messages }, (_, index) => `m${String(index).padStart(2, '0')}`)
const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))

export function itSurvivesAnOutage(name: BrokerName, url: () => string): void {
  const broker = brokers[name]
  describeOwnPostgres('whose store dies', own => {
    let place: Place
    let received = 0
    beforeAll(async () => {
      place = await openPlace(own.server.url)
      await place.migrate()
      Reflect.set(globalThis, armed, (moment: string) => void (received += moment === 'consumer:received' ? 1 : 0))
    })
    afterAll(() => Reflect.deleteProperty(globalThis, armed))
    afterEach(() => place.close())

    it('takes nothing until it is back, and then runs everything once', { timeout: limitMs }, async () => {
      const latchkey = createLatchkey({
        ...{ store: place.store, scope: singleTenant, telemetry: silentTelemetry, maintenance: false },
      })
      await broker.publish(url(), queue, ids)
      let booked = 0
      const subscription = await broker.consume(url(), queue, {
        operation: latchkey.atomic('book.inside'),
        backoffMs,
        async handler({ tx }, { id }) {
          await pause(50)
          await place.insert(tx, `${id}`)
          booked += 1
        },
      })
      await vi.waitFor(() => expect(booked).toBeGreaterThan(messages / 6), { timeout: limitMs, interval: 5 })
      await own.server.kill()
      const before = received
      await pause(awayMs)
      // As many as it had taken, and now and then some to see whether the store is back.
      expect(received - before).toBeLessThan((2 + awayMs / backoffMs) * 4)
      expect(booked).toBeLessThan(messages)
      await own.server.restart()
      const settled = async () => expect(await broker.waiting(url(), queue)).toBe(0)
      await vi.waitFor(settled, { timeout: limitMs, interval: 200 })
      const counts = await Promise.all(ids.map(id => place.businessRows(id)))
      expect(counts).toEqual(ids.map(() => 1))
      await subscription.stop()
      await latchkey.close()
    })
  })
}
