/** The playground with its keys in Redis: what it carries there, and what it says of the rest. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { describeRedis } from '../../../test/servers/redis/describe-redis.ts'
import { startRedis } from '../../../test/servers/redis/redis-server.ts'
import { failToStart, killTheRest, startPlayground } from './playground-process.ts'

const directory = mkdtempSync(join(tmpdir(), 'latchkey-playground-redis-'))
afterAll(() => {
  killTheRest()
  rmSync(directory, { recursive: true, force: true })
})

const bodyOf = (answer: string) => answer.slice(answer.indexOf('\r\n\r\n') + 4)

describeRedis('the playground on Redis', own => {
  it('says what it leaves out, and answers every other line as it says', { timeout: 120_000 }, async () => {
    const { printed, commands, paste, line, stop, url } = await startPlayground(
      ...['--dir', join(directory, 'lines'), '--store', own.server.url, '--quarantine', '4000'],
    )
    const eventually = (text: string, wanted: string) =>
      expect.poll(() => paste(text), { timeout: 30_000, interval: 300 }).toContain(wanted)
    expect(printed).toContain('Left out, because this store has no transactions: orders')
    expect(commands.filter(command => command.includes('/orders'))).toEqual([])
    expect(await paste(`curl -si -X POST ${url}/orders -H 'Authorization: Bearer demo-acme'`)).toContain('404')

    const payment = line('"amount":500')
    const first = await paste(payment)
    expect(first).toContain('HTTP/1.1 201')
    const second = await paste(payment)
    expect(second.toLowerCase()).toContain('idempotent-replayed: true')
    expect(bodyOf(second)).toBe(bodyOf(first))
    expect(await paste(line('"amount":501'))).toContain('HTTP/1.1 422')
    const ofOther = await paste(line('demo-globex'))
    expect(ofOther).toContain('HTTP/1.1 201')
    expect(bodyOf(ofOther)).not.toBe(bodyOf(first))

    // The bank pays, its answer is lost, and its webhook settles it.
    await paste(line('lose-response', 1))
    expect(await paste(line('"amount":800'))).toContain('HTTP/1.1 504')
    await eventually(line('"amount":800'), 'HTTP/1.1 201')
    const ledger: { amount: number }[] = JSON.parse(await paste(line('/ledger')))
    expect(ledger.filter(({ amount }) => amount === 800)).toHaveLength(1)
    expect(ledger.filter(({ amount }) => amount === 500)).toHaveLength(1)

    const accepted = await paste(line('/exports'))
    expect(accepted).toContain('HTTP/1.1 202')
    await eventually(line('/exports'), '"charges":2,"total":1300')
    expect(await stop()).toBe(0)
  })

  it('refuses a server that may evict keys, and one that is not there, without its password', async () => {
    const evicting = await startRedis({ maxmemory: '100mb', 'maxmemory-policy': 'allkeys-lru' })
    const refused = await failToStart('--store', evicting.url)
    await evicting.stop()
    expect(refused).toMatchObject({ code: 2, said: expect.stringContaining('maxmemory-policy noeviction') })
    const absent = await failToStart('--store', 'redis://user:secret@127.0.0.1:1')
    expect(absent).toMatchObject({ code: 2, said: expect.stringContaining('redis://127.0.0.1:1 cannot be used') })
    expect(absent.said).not.toContain('secret')
  })
})
