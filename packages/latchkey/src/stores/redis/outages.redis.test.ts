/** A server that is killed, that is full, and replies that are lost on their way. */
import { Redis } from 'ioredis'
import { afterEach, describe, expect, it } from 'vitest'
import { describeRedis } from '../../../../../test/servers/redis/describe-redis.ts'
import { startRedis, type RedisServer, type RedisSettings } from '../../../../../test/servers/redis/redis-server.ts'
import { startTcpProxy } from '../../../../../test/servers/tcp-proxy.ts'
import { clientKinds, type OpenClient, openIoredis } from '../../../test/redis/clients.ts'
import { claimRequest, hourMs, outcome, own } from '../../../test/redis/requests.ts'
import type { Claim } from '../../ports/store.ts'
import { redisStore, type RedisStore } from './index.ts'
import { uuidBytes } from './keys/packed-row.ts'

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

async function start(settings: RedisSettings): Promise<RedisServer> {
  const server = await startRedis(settings)
  closing.push(() => server.stop())
  return server
}

async function connect(url: string, kind = clientKinds[0]): Promise<OpenClient> {
  if (kind === undefined) throw new Error('there are two clients')
  const opened = await kind.open(url)
  closing.push(() => opened.close())
  return opened
}

describeRedis('the redis store', common => {
  describe.each(clientKinds)('on $name', kind => {
    it('keeps every claim and every answer that was acknowledged when its server is killed', async () => {
      const server = await start({ appendfsync: 'always' })
      const store = redisStore({ client: (await connect(server.url, kind)).client })
      const { owned, done } = await claimUntilKilled(store, server)
      await server.restart()
      await expect.poll(() => store.read(owned[0]?.id ?? '').catch(() => undefined), { timeout: 5_000 }).toBeDefined()
      for (const claim of owned) {
        expect(await store.read(claim.id)).toMatchObject({
          state: 'in_progress',
          fence: claim.fence,
          claimId: claim.claimId,
        })
        expect(await store.complete(claim, outcome('after'), hourMs)).toBe('written')
      }
      for (const claim of done) expect((await store.read(claim.id))?.outcome).toMatchObject({ status: 201 })
    })

    it('grants nothing new while its server is full, and still answers, records and replays', async () => {
      const server = await start({ 'maxmemory-policy': 'noeviction' })
      const store = redisStore({ client: (await connect(server.url, kind)).client })
      const owner = await own(store, 'owner')
      const failing = await own(store, 'failing')
      const replayed = await own(store, 'replayed')
      await store.complete(replayed, outcome('stored'), hourMs)
      await fill(server)
      const refused = { code: 'store-unavailable', sent: false, message: expect.stringContaining('Raise maxmemory') }
      await expect(store.claim(claimRequest('new'))).rejects.toMatchObject(refused)
      expect(await store.claim(claimRequest('replayed'))).toMatchObject({
        kind: 'seen',
        record: { state: 'completed' },
      })
      expect(await store.claim(claimRequest('owner'))).toMatchObject({ kind: 'seen', record: { state: 'in_progress' } })
      const told = (call: Promise<string>) => call.catch((error: Error) => error.message)
      expect(await told(store.heartbeat(owner, hourMs))).toBe('written')
      expect(await told(store.complete(owner, outcome('x'.repeat(1_000)), hourMs))).toBe('written')
      expect(await store.fail(failing, { to: 'unknown', errorCode: 'x', dueInMs: 0 })).toBe('written')
      await expect(store.claim(claimRequest('new'))).rejects.toMatchObject(refused)
    })
  })

  it.each(['request', 'reply'] as const)(
    'is granted a claim once whose %s was lost, though ioredis sends it again',
    async lost => {
      const proxy = await startTcpProxy(common.server.url)
      closing.push(() => proxy.close())
      const store = redisStore({ client: (await connect(proxy.through(common.server.url))).client })
      await own(store, `before ${lost}`)
      const request = claimRequest(`lost ${lost}`)
      const cut = proxy.cutAt(uuidBytes(request.claimId), lost)
      const result = await store.claim(request)
      await cut
      expect(result).toMatchObject({ kind: 'won', attempt: 1, crashes: 0, from: 'none' })
      const claim = (result as { claim: Claim }).claim
      expect((await store.claim(claimRequest(`lost ${lost}`))).kind).toBe('seen')
      expect(await store.complete(claim, outcome('done'), hourMs)).toBe('written')
    },
  )

  it('does not call a claim refused that was granted before its connection broke', async () => {
    const server = await start({})
    const proxy = await startTcpProxy(server.url)
    closing.push(() => proxy.close())
    const client = new Redis(proxy.through(server.url), { maxRetriesPerRequest: 20, retryStrategy: () => 50 })
    closing.push(async () => client.disconnect())
    client.on('error', () => {})
    const store = redisStore({ client })
    await own(store, 'before')
    const request = claimRequest('granted and lost')
    // In the same turn: the next connection is made, and hears nothing.
    const cut = proxy.cutAt(uuidBytes(request.claimId), 'reply').then(() => proxy.silence())
    const claiming = expect(store.claim(request)).rejects.toMatchObject({ code: 'store-unavailable', sent: undefined })
    await cut
    await fill(server)
    proxy.mend()
    await claiming
    const direct = redisStore({ client: (await connect(server.url)).client })
    expect(await direct.read(request.identity.id)).toMatchObject({ state: 'in_progress', claimId: request.claimId })
    expect(await direct.releaseMany([{ id: request.identity.id, claimId: request.claimId }])).toEqual([request.claimId])
  })

  it('says written to an answer whose first reply was lost', async () => {
    const proxy = await startTcpProxy(common.server.url)
    closing.push(() => proxy.close())
    const store = redisStore({ client: (await connect(proxy.through(common.server.url))).client })
    const claim = await own(store, 'answered')
    const cut = proxy.cutAt('the only answer', 'reply')
    expect(await store.complete(claim, outcome('the only answer'), hourMs)).toBe('written')
    await cut
    expect((await store.inspect(claim.id)).evidence).toEqual([])
  })

  it('says of a node-redis claim without a reply that it failed, and finds it again by its claim id', async () => {
    const proxy = await startTcpProxy(common.server.url)
    closing.push(() => proxy.close())
    const store = redisStore({ client: (await connect(proxy.through(common.server.url), clientKinds[1])).client })
    await own(store, 'before node-redis')
    const request = claimRequest('lost to node-redis')
    const cut = proxy.cutAt(uuidBytes(request.claimId), 'reply')
    await expect(store.claim(request)).rejects.toMatchObject({ code: 'store-unavailable', sent: undefined })
    await cut
    const direct = redisStore({ client: (await connect(common.server.url)).client })
    expect(await direct.read(request.identity.id)).toMatchObject({ state: 'in_progress', claimId: request.claimId })
    expect(await direct.releaseMany([{ id: request.identity.id, claimId: request.claimId }])).toEqual([request.claimId])
  })

  it('fails at once while its server is away', async () => {
    const server = await start({})
    const store = redisStore({ client: (await connect(server.url)).client })
    await own(store, 'before')
    await server.kill()
    await expect(store.claim(claimRequest('away'))).rejects.toMatchObject({ code: 'store-unavailable' })
  })
})

/** What was acknowledged before the server died, in the middle of more. */
async function claimUntilKilled(store: RedisStore, server: RedisServer): Promise<{ owned: Claim[]; done: Claim[] }> {
  const owned: Claim[] = []
  const done: Claim[] = []
  const work = Array.from({ length: 400 }, async (_, n) => {
    const claim = await own(store, `killed/${n}/`)
    if (n % 2 === 0) return void owned.push(claim)
    await store.complete(claim, outcome(`answer ${n}`), hourMs)
    done.push(claim)
  })
  const settled = Promise.allSettled(work)
  await expect.poll(() => owned.length, { interval: 1 }).toBeGreaterThan(10)
  await server.kill()
  await settled
  return { owned, done }
}

/** What it holds already is more than its limit from now on. */
async function fill(server: RedisServer): Promise<void> {
  const opened = await openIoredis(server.url)
  closing.push(() => opened.close())
  await opened.client.config('SET', 'maxmemory', '1mb')
  await expect(opened.client.set('filler', 'x')).rejects.toThrow(/^OOM/)
}
