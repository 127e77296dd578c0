import { jetstream, type JetStreamManager, jetstreamManager } from '@nats-io/jetstream'
import { connect, headers, type NatsConnection, nanos } from '@nats-io/transport-node'
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { describeNats } from '../../../../../test/servers/nats/describe-nats.ts'
import { startTcpProxy } from '../../../../../test/servers/tcp-proxy.ts'
import { drain, drainAll, type OpenBroker, order } from '../../../test/outbox/broker-fixture.ts'
import { describeBrokerCases } from '../../../test/outbox/broker.cases.ts'
import { openFixture, type OutboxFixture } from '../../../test/outbox/fixture.ts'
import { createRelay } from '../index.ts'
import { natsTarget } from './index.ts'

const tenMinutes = nanos(600_000)
const reconnecting = { reconnectTimeWait: 50, maxReconnectAttempts: -1, ignoreClusterUpdates: true }

describeNats('a stream of NATS', own => {
  let observer: NatsConnection
  let manager: JetStreamManager
  beforeAll(async () => {
    observer = await connect({ servers: own.server.url, ...reconnecting })
    manager = await jetstreamManager(observer)
  })
  afterAll(() => observer.close())

  async function openStream(over: { duplicate_window?: number } = {}): Promise<void> {
    await manager.streams.delete('ORDERS').catch(() => undefined)
    const config = { name: 'ORDERS', subjects: ['orders', 'orders.>'], max_msg_size: 10_000 }
    await manager.streams.add({ ...config, duplicate_window: tenMinutes, ...over })
  }

  async function stored(): Promise<{ id: string; text: string; headers: Record<string, string> }[]> {
    const { state } = await manager.streams.info('ORDERS')
    const messages = []
    for (let seq = state.first_seq; seq <= state.last_seq && state.messages > 0; seq += 1) {
      const found = await manager.streams.getMessage('ORDERS', { seq })
      if (found === null) continue
      const all = Object.fromEntries([...found.header].map(([name, values]) => [name, values[0] ?? '']))
      messages.push({ id: all['Nats-Msg-Id'] ?? '', text: found.string(), headers: all })
    }
    return messages
  }

  async function openBroker(): Promise<OpenBroker> {
    await openStream()
    const wire = await startTcpProxy(own.server.url)
    const connection = await connect({ servers: `127.0.0.1:${wire.port}`, ...reconnecting })
    return {
      target: natsTarget({ jetstream: jetstream(connection), headers, stream: 'ORDERS', timeoutMs: 1_000 }),
      stored,
      cut: (word, lost) => void wire.cutAt(word, lost),
      refused: id => ({ message: order(id, { payload: Buffer.alloc(20_000) }), cause: 'JetStream 10054' }),
      async close() {
        await connection.close()
        await wire.close()
      },
    }
  }

  describeBrokerCases({ open: openBroker, copies: 1 })

  describe('by itself', () => {
    let fixture: OutboxFixture
    beforeEach(async () => {
      fixture = await openFixture()
      await openStream()
      return () => fixture.close()
    })
    const options = () => ({ jetstream: jetstream(observer), headers, stream: 'ORDERS', timeoutMs: 1_000 })

    it('keeps what the stream calls the message', async () => {
      await fixture.append(order('m'))
      let position = ''
      const target = natsTarget(options())
      const deliver: typeof target.deliver = (each, more) => ((position = each.position), target.deliver(each, more))
      await drain(fixture, { ...target, deliver })
      expect(await fixture.store.outbox.downstreamId(position)).toBe('ORDERS:1')
    })

    it.each([
      ['that no stream stores', { subject: 'nowhere' }, 'no-stream'],
      ['that another stream stores', { stream: 'OTHERS', allowShortWindow: true }, 'JetStream 10060'],
      ['with a wildcard', { subject: 'orders.*' }, 'invalid-subject'],
      ['with a space', { subject: () => 'orders paid' }, 'invalid-subject'],
    ])('parks a message to a subject %s', async (_, over, cause) => {
      await manager.streams.add({ name: 'OTHERS', subjects: ['others'] })
      await fixture.append(order('m'))
      await drain(fixture, natsTarget({ ...options(), ...over }))
      expect(await fixture.store.outbox.parked({ limit: 1 })).toMatchObject([{ dedupId: 'm', cause }])
      expect(await stored()).toEqual([])
    })

    it.each([' m', 'm\r\nNats-Rollup: all'])(
      'parks a message whose id %j the server would read otherwise',
      async dedupId => {
        await fixture.append(order('m', { dedupId }))
        await drain(fixture, natsTarget(options()))
        expect(await fixture.store.outbox.parked({ limit: 1 })).toMatchObject([{ dedupId, cause: 'invalid-id' }])
      },
    )

    it('tries again what its application cannot address', async () => {
      await fixture.append(order('m'))
      const turns = await drain(fixture, natsTarget({ ...options(), subject: () => undefined as never }))
      expect(turns).toMatchObject([{ failed: 1, parked: 0 }])
    })

    it('lets no header of a message command the server', async () => {
      await fixture.append(order('m', { headers: { 'Nats-Msg-Id': 'other', 'nats-rollup': 'all', 'x-a': 'b' } }))
      await drain(fixture, natsTarget(options()))
      expect(await stored()).toMatchObject([{ id: 'm', headers: { 'x-a': 'b' } }])
      expect(Object.keys((await stored())[0]?.headers ?? {})).not.toContain('nats-rollup')
    })

    it('stores a message once whose server was killed before it confirmed', async () => {
      await fixture.append(...Array.from({ length: 40 }, (_, index) => order(`m${index}`, { aggregate: `a${index}` })))
      const target = natsTarget(options())
      let confirmed = 0
      const deliver: typeof target.deliver = async (each, more) => {
        const result = await target.deliver(each, more)
        confirmed += 1
        if (confirmed === 10) await own.server.kill()
        return result
      }
      const draining = drain(fixture, { ...target, concurrency: 3, deliver })
      await expect.poll(() => confirmed, { timeout: 20_000 }).toBeGreaterThanOrEqual(10)
      await own.server.restart()
      await draining
      await drainAll(fixture, target)
      await expect
        .poll(async () => (await stored()).map(({ id }) => id).toSorted())
        .toEqual(Array.from({ length: 40 }, (_, index) => `m${index}`).toSorted())
    })

    describe('with a stream that forgets ids before the last retry', () => {
      const relay = (over: { allowShortWindow?: boolean; backoffMsMax?: number }, report = vi.fn()) => {
        const { backoffMsMax = 300_000, ...more } = over
        const targets = { orders: natsTarget({ ...options(), ...more }) }
        const telemetry = { count() {}, observe() {}, report }
        return createRelay({ outbox: fixture.store.outbox, targets, backoffMsMax, telemetry })
      }
      beforeEach(() => openStream({ duplicate_window: nanos(120_000) }))

      it('delivers nothing and says what to change', async () => {
        await fixture.append(order('m'))
        const report = vi.fn()
        expect(await relay({}, report).relayOnce()).toMatchObject({ delivered: 0, failed: 1 })
        expect(await stored()).toEqual([])
        expect(report).toHaveBeenCalledWith('an outbox target is not ready', {
          detail: expect.stringMatching(
            /ORDERS recognises duplicates for 120000 ms, .* after 345000 ms: raise duplicate_window/,
          ),
        })
      })

      it('delivers when the stream is corrected', async () => {
        await fixture.append(order('m'))
        const same = relay({})
        await same.relayOnce()
        await manager.streams.update('ORDERS', { duplicate_window: tenMinutes })
        fixture.makeDue()
        await expect.poll(async () => (await same.relayOnce()).kind).toBe('idle')
        expect(await stored()).toMatchObject([{ id: 'm' }])
      })

      it.each([{ allowShortWindow: true }, { backoffMsMax: 60_000 }])('delivers with %o', async over => {
        await fixture.append(order('m'))
        expect(await relay(over).relayOnce()).toMatchObject({ delivered: 1 })
      })
    })
  })
})

it('refuses wrong options at construction', () => {
  expect(() => natsTarget({} as never)).toThrow(/needs jetstream/)
  expect(() => natsTarget({ jetstream: {}, headers, stream: 'S' } as never)).toThrow(/JetStream client with publish/)
  expect(() => natsTarget({ streams: 'S' } as never)).toThrow(/did you mean stream\?/)
})
