/** A cluster of three masters: every script finds the server of its bucket, on both clients. */
import { randomUUID } from 'node:crypto'
import { Cluster, Redis } from 'ioredis'
import { createCluster } from 'redis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { describeWith } from '../../../../../test/servers/describe-postgres.ts'
import { findRedis } from '../../../../../test/servers/redis/redis-binary.ts'
import { type RedisCluster, startRedisCluster } from '../../../../../test/servers/redis/redis-cluster.ts'
import { startRedis } from '../../../../../test/servers/redis/redis-server.ts'
import { everyCall } from '../../../test/redis/every-call.ts'
import { claimRequest, hourMs, outcome, own } from '../../../test/redis/requests.ts'
import type { RedisClient } from '../shared/redis/driver.ts'
import { redisStore, type RedisStore } from './index.ts'

interface Opened {
  readonly client: RedisClient
  close(): unknown
}

const found = findRedis()

describeWith('the redis store on a cluster', found.kind === 'missing' ? found.why : undefined, () => {
  let cluster: RedisCluster
  let opened: readonly Opened[]
  let stores: readonly RedisStore[]

  beforeAll(async () => {
    cluster = await startRedisCluster()
    const nodes = cluster.servers.map(({ host, port }) => ({ host, port }))
    const ioredis = new Cluster(nodes)
    ioredis.on('error', () => {})
    const nodeRedis = createCluster({ rootNodes: nodes.map(socket => ({ socket })) })
    nodeRedis.on('error', () => {})
    await nodeRedis.connect()
    opened = [
      { client: ioredis, close: () => ioredis.disconnect() },
      { client: nodeRedis, close: () => nodeRedis.destroy() },
    ]
    stores = opened.map(({ client }) => redisStore({ client }))
  })
  afterAll(async () => {
    for (const each of opened ?? []) await each.close()
    await cluster?.stop()
  })

  it('grants each identity once over both clients, on all servers', async () => {
    const keys = Array.from({ length: 60 }, (_, n) => `cluster/${n}/`)
    for (const key of keys) {
      const asked = Array.from({ length: 3 }, () => stores.map(store => store.claim(claimRequest(key))))
      const results = await Promise.all(asked.flat())
      expect(results.filter(({ kind }) => kind === 'won')).toHaveLength(1)
    }
    for (const { url } of cluster.servers) {
      const client = new Redis(url)
      expect(await client.dbsize()).toBeGreaterThan(20)
      client.disconnect()
    }
  })

  it('parts the calls of a turn by their buckets where the client of one server reaches a cluster', async () => {
    // As a proxy in front of a cluster does: it knows where keys are, and takes no script over several slots.
    const alone = await startRedis({ 'cluster-enabled': 'yes' })
    const client = new Redis(alone.url)
    await client.call('CLUSTER', 'ADDSLOTSRANGE', 0, 16_383)
    await expect.poll(() => client.call('CLUSTER', 'INFO'), { timeout: 10_000 }).toContain('cluster_state:ok')
    const store = redisStore({ client })
    const keys = Array.from({ length: 20 }, (_, n) => `parted/${n}/`)
    const asked = await Promise.allSettled(keys.map(key => store.claim(claimRequest(key))))
    const claims = asked.flatMap(each => (each.status === 'fulfilled' && each.value.kind === 'won' ? [each.value] : []))
    expect(claims).toHaveLength(keys.length)
    const written = await Promise.all(claims.map(({ claim }) => store.complete(claim, outcome('done'), hourMs)))
    expect(new Set(written)).toEqual(new Set(['written']))
    client.disconnect()
    await alone.stop()
  })

  describe.each([0, 1])('on client %i', which => {
    const store = () => stores[which] as RedisStore

    it('answers every call', () => everyCall(store(), `cluster ${which}`))

    it('checks every server, and refuses for the one that may evict', async () => {
      expect(await store().check()).toEqual({ kind: 'fit' })
      const client = new Redis(cluster.servers[2]?.url ?? '')
      await client.config('SET', 'maxmemory-policy', 'allkeys-lru')
      await client.config('SET', 'maxmemory', '100mb')
      expect(await store().check()).toMatchObject({ kind: 'unsafe', message: expect.stringContaining('allkeys-lru') })
      await client.config('SET', 'maxmemory', '0')
      client.disconnect()
      expect(await store().check()).toEqual({ kind: 'fit' })
    })

    it('answers for every bucket but the one whose slot is moving, says that nothing ran there, and finds it in its new place', async () => {
      const moved = claimRequest(`moved ${which}`)
      // Of the same bucket, and another one.
      const id = moved.identity.id.replace(/.$/, last => (last === '0' ? '1' : '0'))
      const beside = { ...moved, identity: { ...moved.identity, id } }
      const owned = await own(store(), `moved ${which}`)
      const move = await beginMove(cluster, `lk:{${owned.id.slice(0, 2)}}:l`)
      const asked = store().claim({ ...beside, claimId: randomUUID() })
      await expect(asked).rejects.toMatchObject({
        code: 'store-unavailable',
        message: expect.stringContaining('TRYAGAIN'),
      })
      expect((await store().claim(claimRequest(`elsewhere ${which}`))).kind).toBe('won')
      await move.finish()
      expect((await store().claim(beside)).kind).toBe('won')
      expect(await store().complete(owned, outcome('moved'), hourMs)).toBe('written')
    })

    it('lists, sweeps and reaps what is on all servers', async () => {
      const name = `all ${which}`
      const scoped = (key: string) => ({ identity: { ...claimRequest(key).identity, scope: name } })
      const claims = await Promise.all(
        Array.from({ length: 30 }, (_, n) => own(store(), `${name}/${n}/`, { ...scoped(`${name}/${n}/`), leaseMs: 0 })),
      )
      const listed = await store().list({ limit: 100, scope: name })
      expect(listed.records.map(({ id }) => id).toSorted()).toEqual(claims.map(({ id }) => id).toSorted())
      const swept = (await store().sweep({ limit: 1_000 })).map(({ id }) => id)
      for (const { id } of claims) expect(swept).toContain(id)
      for (const claim of claims) expect(await store().complete(claim, outcome('late'), hourMs)).toBe('written')
      expect(await store().reap({ limit: 10 })).toBe(0)
    })
  })
})

/** The slot of a key begins to move to another server: what is there stays until it is finished. */
async function beginMove({ servers }: RedisCluster, key: string): Promise<{ finish(): Promise<void> }> {
  const clients = servers.map(({ url }) => new Redis(url))
  const slot = Number(await clients[0]?.cluster('KEYSLOT', key))
  const counts = await Promise.all(clients.map(client => client.cluster('COUNTKEYSINSLOT', slot)))
  const at = counts.findIndex(count => Number(count) > 0)
  const [from, to, target] = [clients[at], clients[(at + 1) % 3], servers[(at + 1) % 3]]
  if (from === undefined || to === undefined || target === undefined) throw new Error(`${key} is on no server`)
  const [fromId, toId] = await Promise.all([from, to].map(client => client.cluster('MYID')))
  await to.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', String(fromId))
  await from.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', String(toId))
  return {
    async finish() {
      const keys = await from.cluster('GETKEYSINSLOT', slot, 1_000)
      await from.call('MIGRATE', target.host, target.port, '', 0, 5_000, 'KEYS', ...(keys as string[]))
      for (const client of [to, from, ...clients]) await client.call('CLUSTER', 'SETSLOT', slot, 'NODE', String(toId))
      for (const client of clients) client.disconnect()
    },
  }
}
