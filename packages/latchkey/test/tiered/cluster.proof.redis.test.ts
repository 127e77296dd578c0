/** A cache on a cluster of three masters, through both clients. A part of `npm run proof`. */
import { Cluster } from 'ioredis'
import { createCluster } from 'redis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeWith } from '../../../../test/servers/describe-postgres.ts'
import { findRedis } from '../../../../test/servers/redis/redis-binary.ts'
import type { RedisClient } from '../../src/stores/shared/redis/driver.ts'
import { type RedisCluster, startRedisCluster } from '../../../../test/servers/redis/redis-cluster.ts'
import { claimRequest } from '../redis/requests.ts'
import { act, bodyOf, cached, patientlyInFront, replay, watchedStore } from './fixture.ts'

const found = findRedis()

describeWith('a cache on a cluster', found.kind === 'missing' ? found.why : undefined, () => {
  let cluster: RedisCluster
  let clients: readonly RedisClient[]
  const closing: (() => unknown)[] = []

  beforeAll(async () => {
    cluster = await startRedisCluster()
    const nodes = cluster.servers.map(({ host, port }) => ({ host, port }))
    const ioredis = new Cluster(nodes)
    ioredis.on('error', () => {})
    const nodeRedis = createCluster({ rootNodes: nodes.map(socket => ({ socket })) })
    nodeRedis.on('error', () => {})
    await nodeRedis.connect()
    closing.push(
      () => ioredis.disconnect(),
      () => nodeRedis.destroy(),
    )
    clients = [ioredis, nodeRedis]
  })
  afterAll(async () => {
    for (const close of closing) await close()
    await cluster?.stop()
  })

  it.each([
    ['ioredis', 0, 1],
    ['node-redis', 1, 0],
  ])('is filled by %s and read by the other, and forgets on every server', async (_, filler, reader) => {
    const below = watchedStore()
    const prefix = `cluster-${filler}`
    const open = (which: number) => patientlyInFront(clients[which] as RedisClient, below.store, { prefix })
    const [fills, reads] = [open(filler), open(reader)]
    const keys = Array.from({ length: 30 }, (__, n) => `cluster/${n}/`)
    for (const key of keys) await cached(fills, below.store, key)
    const asked = below.claims()
    for (const key of keys) expect(bodyOf(await replay(reads, key))).toBe(`answer to ${key}`)
    expect(below.claims()).toBe(asked)
    await Promise.all(keys.map(key => fills.forget(claimRequest(key).identity.id, act)))
    for (const key of keys) expect((await reads.claim(claimRequest(key))).kind).toBe('won')
  })

  it('begins anew on every server when it is flushed', async () => {
    const below = watchedStore()
    const [first, second] = clients.map(client => patientlyInFront(client, below.store, { prefix: 'flushed' }))
    if (first === undefined || second === undefined) throw new Error('there are two clients')
    const keys = Array.from({ length: 30 }, (_, n) => `flushed/${n}/`)
    for (const key of keys) await cached(first, below.store, key)
    await first.flushCache()
    const asked = below.claims()
    for (const key of keys) await replay(second, key)
    expect(below.claims()).toBe(asked + keys.length)
  })
})
