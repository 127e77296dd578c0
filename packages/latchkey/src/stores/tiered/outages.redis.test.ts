/** A cache that hangs, dies, is full, or comes back empty. */
import { readFileSync } from 'node:fs'
import { afterEach, describe, expect, it } from 'vitest'
import { describeRedis } from '../../../../../test/servers/redis/describe-redis.ts'
import { type RedisServer, startRedis } from '../../../../../test/servers/redis/redis-server.ts'
import { clientKinds, openIoredis } from '../../../test/redis/clients.ts'
import { claimRequest, own } from '../../../test/redis/requests.ts'
import {
  act,
  bodyOf,
  cached,
  finish,
  inFront,
  keyIn,
  replay,
  type TieredMemory,
  waitFor,
  watchedStore,
} from '../../../test/tiered/fixture.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

// Of a cache nothing has to survive, and nothing may come back.
const settings = { appendonly: 'no' }

async function start(): Promise<RedisServer> {
  const server = await startRedis(settings)
  closing.push(() => server.stop())
  return server
}

async function timed<T>(run: () => Promise<T>): Promise<readonly [T, number]> {
  const beganMs = performance.now()
  return [await run(), performance.now() - beganMs]
}

/** Until the cache answers again. */
async function recovered(tiered: TieredMemory, key: string): Promise<void> {
  const { hits } = tiered.cacheFigures()
  await waitFor(async () => {
    await replay(tiered, key)
    return tiered.cacheFigures().hits > hits
  })
}

describeRedis(
  'a cache in front',
  common => {
    describe.each(clientKinds)('by $name', kind => {
      async function open(url: string) {
        const { client, close } = await kind.open(url)
        closing.push(close)
        const below = watchedStore()
        const prefix = `outage-${kind.name}-${performance.now()}`
        return { below, prefix, tiered: inFront(client, below.store, prefix) }
      }

      it('costs a request 50 ms when it hangs, then none at all, and is used again when it is back', async () => {
        const server = await start()
        const { below, tiered } = await open(server.url)
        await cached(tiered, below.store, 'k')
        process.kill(server.pid, 'SIGSTOP')
        closing.push(() => process.kill(server.pid, 'SIGCONT'))
        const before = tiered.cacheFigures().failures
        const failures = () => tiered.cacheFigures().failures - before
        await waitFor(async () => {
          const [record, tookMs] = await timed(() => replay(tiered, 'k'))
          expect(bodyOf(record)).toBe('answer to k')
          expect(tookMs).toBeLessThan(1_000)
          return failures() === 5
        })
        const [, manyMs] = await timed(async () => {
          for (let n = 0; n < 200; n += 1) await replay(tiered, 'k')
        })
        // One probe a second, and not 200 waits of 50 ms.
        expect(failures()).toBeLessThanOrEqual(6 + manyMs / 1_000)
        expect(manyMs).toBeLessThan(5_000)
        process.kill(server.pid, 'SIGCONT')
        await recovered(tiered, 'k')
      })

      it('answers every request from the store when it is killed, and uses nothing from before its death', async () => {
        const server = await start()
        const { below, tiered } = await open(server.url)
        await cached(tiered, below.store, 'k')
        await server.kill()
        for (let n = 0; n < 20; n += 1) expect(bodyOf(await replay(tiered, 'k'))).toBe('answer to k')
        expect((await tiered.claim(claimRequest('new'))).kind).toBe('won')
        await server.restart()
        await recovered(tiered, 'k')
      })

      it('refuses to forget while it cannot take the row out, and leaves the row alone', async () => {
        const server = await start()
        const { below, tiered } = await open(server.url)
        const { id } = await cached(tiered, below.store, 'k')
        process.kill(server.pid, 'SIGSTOP')
        closing.push(() => process.kill(server.pid, 'SIGCONT'))
        await expect(tiered.forget(id, act)).rejects.toMatchObject({
          code: 'cache-unavailable',
          message: expect.stringContaining('Nothing was changed in the database'),
        })
        await expect(tiered.erasure.mark('tenant')).rejects.toMatchObject({ code: 'cache-unavailable' })
        await expect(tiered.flushCache()).rejects.toMatchObject({ code: 'cache-unavailable' })
        expect(await below.store.read(id)).toMatchObject({ state: 'completed' })
        process.kill(server.pid, 'SIGCONT')
        await waitFor(() =>
          tiered.forget(id, act).then(
            ({ kind: result }) => result === 'forgotten',
            () => false,
          ),
        )
        expect((await tiered.claim(claimRequest('k'))).kind).toBe('won')
      })

      it('needs no more rights than the guide lists', async () => {
        const outside = await openIoredis(common.server.url)
        closing.push(outside.close)
        const guide = readFileSync(new URL('../../../../../docs/guides/tiered.md', import.meta.url), 'utf8')
        const rights = /^ACL SETUSER latchkey on >secret (.+)$/m.exec(guide)?.[1] ?? ''
        await outside.client.call('ACL', 'SETUSER', 'latchkey', 'reset', 'on', '>secret', ...rights.split(' '))
        const { client, close } = await kind.open(common.server.url.replace('//', '//latchkey:secret@'))
        closing.push(close)
        const below = watchedStore()
        const tiered = inFront(client, below.store, 'lkc')
        const { id } = await cached(tiered, below.store, `rights of ${kind.name}`)
        await recovered(tiered, `rights of ${kind.name}`)
        await tiered.erasure.mark('nobody')
        expect(await tiered.forget(id, act)).toEqual({ kind: 'forgotten' })
      })

      it('asks the store when the cache is full, may not be written, or answers something else', async () => {
        const { below, prefix, tiered } = await open(common.server.url)
        const outside = await openIoredis(common.server.url)
        closing.push(outside.close)
        await finish(below.store, 'k')
        await outside.client.lpush(keyIn(prefix, 'k'), 'a list')
        expect(bodyOf(await replay(tiered, 'k'))).toBe('answer to k')
        await outside.client.del(keyIn(prefix, 'k'))
        await outside.client.config('SET', 'maxmemory', '1')
        closing.push(() => outside.client.config('SET', 'maxmemory', '0'))
        expect(bodyOf(await replay(tiered, 'k'))).toBe('answer to k')
        expect((await own(tiered, 'new')).fence).toBe(1)
        expect(tiered.cacheFigures()).toMatchObject({ hits: 0, fills: 0 })
      })
    })
  },
  settings,
)
