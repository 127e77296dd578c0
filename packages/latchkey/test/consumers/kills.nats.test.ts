/** Consumers that are killed at any moment between delivery and acknowledgement: nothing is lost, and nothing happens twice that must not. */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { jetstream, type JetStreamManager, jetstreamManager } from '@nats-io/jetstream'
import { connect, headers, nanos, type NatsConnection } from '@nats-io/transport-node'
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest'
import { forkProgram } from '../../../../test/programs/program.ts'
import { describeNats } from '../../../../test/servers/nats/describe-nats.ts'
import { openPlace, type Place } from '../processes/database.ts'
import type { NatsProcessArgument } from './nats-process.ts'

type Kind = NatsProcessArgument['kind']

const messages = 40
/** Moments of the engine and of the handler, spread over a delivery. */
const deaths = [3, 4, 5, 11, 18, 27]
/** At the same time in one process. */
const concurrency = 4

describeNats('consumers of NATS that are killed', own => {
  const directory = mkdtempSync(join(tmpdir(), 'latchkey-consumers-'))
  const placeName = join(directory, 'shop.db')
  let place: Place
  let connection: NatsConnection
  let manager: JetStreamManager
  const running: ChildProcess[] = []
  beforeAll(async () => {
    place = await openPlace(placeName)
    await place.migrate()
    connection = await connect({ servers: own.server.url })
    manager = await jetstreamManager(connection)
  })
  afterEach(async () => {
    for (const child of running.splice(0)) await killed(child)
  })
  afterAll(async () => {
    await connection.close()
    await place.close()
    rmSync(directory, { recursive: true, force: true })
  })

  async function killed(child: ChildProcess): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }

  async function start(kind: Kind, diesAt?: number): Promise<ChildProcess> {
    const argument: NatsProcessArgument = { url: own.server.url, place: placeName, kind, diesAt }
    const child = await forkProgram(new URL('./nats-process.ts', import.meta.url), [JSON.stringify(argument)])
    running.push(child)
    return child
  }

  async function publishAll(kind: Kind): Promise<readonly string[]> {
    await manager.streams.delete('ORDERS').catch(() => undefined)
    await manager.streams.add({ name: 'ORDERS', subjects: ['orders'] })
    // At least the lease, which an atomic operation does not choose.
    const ackWaitMs = kind === 'atomic' ? 30_000 : 1_000
    const config = { durable_name: kind, ack_policy: 'explicit', ack_wait: nanos(ackWaitMs) }
    await manager.consumers.add('ORDERS', config as never)
    const ids = Array.from({ length: messages }, (_, index) => `m${String(index).padStart(3, '0')}`)
    for (const id of ids) {
      const all = headers()
      all.set('Nats-Msg-Id', id)
      await jetstream(connection).publish('orders', id, { headers: all })
    }
    return ids
  }

  async function allSettled(kind: Kind): Promise<void> {
    const settled = async () => {
      const { num_pending: pending, num_ack_pending: open } = await manager.consumers.info('ORDERS', kind)
      expect(pending + open).toBe(0)
    }
    await vi.waitFor(settled, { timeout: 120_000, interval: 200 })
  }

  /** How often each happened, after six processes have died over them. */
  async function countsOf(kind: Kind): Promise<readonly number[]> {
    const ids = await publishAll(kind)
    for (const diesAt of deaths) {
      const [, signal]: unknown[] = await once(await start(kind, diesAt), 'exit')
      expect(signal).toBe('SIGKILL')
    }
    await start(kind)
    await start(kind)
    await allSettled(kind)
    const count = (label: string) => (kind === 'atomic' ? place.businessRows(label) : place.executions(label))
    return Promise.all(ids.map(id => count(`${kind}/${id}`)))
  }

  it('book each message once in its transaction', { timeout: 180_000 }, async () => {
    expect(await countsOf('atomic')).toEqual(Array.from({ length: messages }, () => 1))
  })

  it(
    'run each message at least once where it may run again, and once more only where a process died',
    { timeout: 180_000 },
    async () => {
      const counts = await countsOf('rerun')
      expect(Math.min(...counts)).toBe(1)
      expect(counts.reduce((sum, times) => sum + times, 0)).toBeLessThanOrEqual(messages + deaths.length * concurrency)
    },
  )

  it('never run a message twice where it must not run again', { timeout: 180_000 }, async () => {
    const counts = await countsOf('hold')
    expect(Math.max(...counts)).toBe(1)
    expect(counts.filter(times => times === 0).length).toBeLessThanOrEqual(deaths.length * concurrency)
  })
})
