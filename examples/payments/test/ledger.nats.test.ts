/** The playground with a broker: the shop publishes, the ledger books, and either is killed in the middle. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type JetStreamManager, jetstreamManager } from '@nats-io/jetstream'
import { connect, type NatsConnection } from '@nats-io/transport-node'
import { afterAll, afterEach, beforeEach, expect, it } from 'vitest'
import { describeNats } from '../../../test/servers/nats/describe-nats.ts'
import { failToStart, killTheRest, type Playground, startPlayground } from './playground-process.ts'

const directory = mkdtempSync(join(tmpdir(), 'latchkey-playground-nats-'))
afterAll(() => {
  killTheRest()
  rmSync(directory, { recursive: true, force: true })
})

interface Booking {
  readonly amount: number
  readonly payment: number
}

const eventually = { timeout: 60_000, interval: 200 }

describeNats('the playground with a broker', own => {
  let connection: NatsConnection
  let manager: JetStreamManager
  beforeEach(async () => {
    connection = await connect({ servers: own.server.url, maxReconnectAttempts: -1, reconnectTimeWait: 100 })
    manager = await jetstreamManager(connection)
  })
  afterEach(async () => {
    await manager.streams.delete('PAYMENTS').catch(() => undefined)
    await connection.close()
  })
  const start = (dir: string) => startPlayground('--dir', join(directory, dir), '--broker', own.server.url)
  const bookings = async ({ paste, line }: Playground): Promise<readonly Booking[]> =>
    JSON.parse(await paste(line('/bookings')))
  const amounts = async (playground: Playground) => (await bookings(playground)).map(({ amount }) => amount)
  /** Deliveries, and the last message before which all are acknowledged. */
  const delivered = async () => {
    const { delivered: all, ack_floor: acknowledged } = await manager.consumers.info('PAYMENTS', 'ledger')
    return { deliveries: all.consumer_seq, acknowledged: acknowledged.stream_seq }
  }

  it('books a payment once whose ledger is killed before the acknowledgement', { timeout: 120_000 }, async () => {
    const playground = await start('ledger-killed')
    const { paste, line, url, commands } = playground
    expect(playground.printed).toContain(`broker: ${own.server.url} · ledger: pid `)
    for (const command of commands) expect(await paste(`curl -s ${url}/`)).toContain(command)
    await paste(line('"amount":500'))
    await expect.poll(() => amounts(playground), eventually).toEqual([500])
    await expect.poll(delivered, eventually).toEqual({ deliveries: 1, acknowledged: 1 })

    await paste(line('late-ack'))
    const [pay = '', kill = ''] = line('"amount":1000').split('; sleep 2; ')
    await paste(pay)
    await expect.poll(() => amounts(playground), eventually).toEqual([500, 1000])
    expect(await delivered()).toEqual({ deliveries: 2, acknowledged: 1 })
    await paste(kill)
    await expect.poll(delivered, eventually).toEqual({ deliveries: 3, acknowledged: 2 })
    expect(await amounts(playground)).toEqual([500, 1000])
    expect(await playground.stop()).toBe(0)
  })

  it('books a payment once whose API is killed before it is published', { timeout: 120_000 }, async () => {
    const first = await start('api-killed')
    await own.server.kill()
    expect(await first.paste(first.line('"amount":500'))).toContain('HTTP/1.1 201')
    await first.kill()
    await own.server.restart()
    const published = async () => (await manager.streams.info('PAYMENTS')).state.messages
    await expect.poll(published, eventually).toBe(0)

    const second = await start('api-killed')
    await expect.poll(() => amounts(second), eventually).toEqual([500])
    await expect.poll(delivered, eventually).toEqual({ deliveries: 1, acknowledged: 1 })
    // A retry of the client is a replay, and publishes nothing.
    const retry = await second.paste(second.line('"amount":500'))
    expect(retry.toLowerCase()).toContain('idempotent-replayed: true')
    await second.paste(second.line('"amount":600'))
    await expect.poll(() => amounts(second), eventually).toEqual([500, 600])
    expect(await second.stop()).toBe(0)
  })

  it('says in a sentence which broker it cannot use, and exits with 2', async () => {
    const refused = async (...flags: string[]) => {
      const { code, said } = await failToStart(...flags)
      expect(code).toBe(2)
      return said
    }
    expect(await refused('--broker', 'amqp://localhost')).toContain('must be a URL of NATS')
    expect(await refused('--broker', own.server.url, '--store', 'redis://localhost')).toContain('no transactions')
    const absent = await refused('--broker', 'nats://user:secret@127.0.0.1:1')
    expect(absent).toContain('the broker at nats://127.0.0.1:1 cannot be used')
    expect(absent).not.toContain('secret')
  })
})
