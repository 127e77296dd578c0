/** `replicas`: a claim counts only when a replica has it. The link between master and replica goes through a wire that swallows bytes. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { describeRedis } from '../../../../../test/servers/redis/describe-redis.ts'
import { startRedis, type RedisServer } from '../../../../../test/servers/redis/redis-server.ts'
import { startTcpProxy, type TcpProxy } from '../../../../../test/servers/tcp-proxy.ts'
import { clientKinds, type OpenClient, openIoredis } from '../../../test/redis/clients.ts'
import { claimRequest, hourMs, outcome, own } from '../../../test/redis/requests.ts'
import { redisStore, type RedisStore } from './index.ts'

const followedMsMax = 30_000

describeRedis('the redis store with replicas', () => {
  let master: RedisServer
  let wire: TcpProxy
  let replica: RedisServer
  let opened: OpenClient[]

  beforeEach(async () => {
    master = await startRedis({ 'repl-diskless-sync-delay': '0' })
    wire = await startTcpProxy(master.url)
    replica = await startRedis({ replicaof: `127.0.0.1 ${wire.port}` })
    opened = []
    const { client } = await outside(master)
    await expect.poll(() => client.wait(1, 100), { timeout: 10_000 }).toBe(1)
    await client.set('written', 'once')
    await expect.poll(() => client.wait(1, 100), { timeout: 10_000 }).toBe(1)
  })
  afterEach(async () => {
    for (const each of opened) await each.close()
    await replica.stop()
    await wire.close()
    await master.stop()
  })

  async function outside(server: RedisServer): Promise<Awaited<ReturnType<typeof openIoredis>>> {
    const one = await openIoredis(server.url)
    opened.push(one)
    return one
  }

  /** From here on, a connection that has written nothing since is told of one replica, whatever others write. */
  async function allConfirmed(): Promise<void> {
    const { client } = await outside(master)
    const lag = async () => {
      const info = await client.info('replication')
      return Number(/master_repl_offset:(\d+)/.exec(info)?.[1]) - Number(/offset=(\d+)/.exec(info)?.[1])
    }
    await expect.poll(lag, { timeout: 5_000 }).toBe(0)
  }

  /** Two stores on one client: `followed` waits as long as a busy machine may take, `alone` is asked when no replica can answer. */
  async function openStores(kind = clientKinds[0]): Promise<{ followed: RedisStore; alone: RedisStore }> {
    if (kind === undefined) throw new Error('there are two clients')
    const one = await kind.open(master.url)
    opened.push(one)
    const open = (timeoutMs: number) => redisStore({ client: one.client, replicas: { wait: 1, timeoutMs } })
    return { followed: open(followedMsMax), alone: open(200) }
  }

  describe.each(clientKinds)('on $name', kind => {
    it('grants, answers and replays while the replica follows', async () => {
      const { followed: store } = await openStores(kind)
      const claim = await own(store, 'a')
      expect(await store.complete(claim, outcome('done'), hourMs)).toBe('written')
      expect((await store.claim(claimRequest('a'))).kind).toBe('seen')
      const { client } = await outside(replica)
      expect(await client.dbsize()).toBeGreaterThan(1)
    })

    it('grants no claim that the replica does not have, and leaves the key free', async () => {
      const { followed, alone: store } = await openStores(kind)
      const owner = await own(followed, 'owner')
      await allConfirmed()
      wire.silence()
      await expect(store.claim(claimRequest('a'))).rejects.toMatchObject({
        code: 'store-unavailable',
        sent: false,
        message: expect.stringContaining('0 of 1 replicas'),
      })
      expect(await store.read(claimRequest('a').identity.id)).toMatchObject({ state: 'failed_retryable' })
      await expect(store.complete(owner, outcome('done'), hourMs)).rejects.toMatchObject({ code: 'store-unavailable' })
      // On the master it is written. Who only reads is not kept waiting for replicas.
      expect(await store.read(owner.id)).toMatchObject({ state: 'completed' })
      expect(await store.heartbeat(owner, hourMs)).toBe('claim-lost')
    })

    it('does not take the replicas of another connection for its own', async () => {
      const { followed, alone: store } = await openStores(kind)
      const claim = await own(followed, 'answered')
      wire.silence()
      await expect(store.complete(claim, outcome('done'), hourMs)).rejects.toMatchObject({ code: 'store-unavailable' })
      // Another process, which has written nothing: the answer is there, and still no replica has it.
      const { alone: second } = await openStores(kind)
      await second.check()
      await expect(second.complete(claim, outcome('done'), hourMs)).rejects.toMatchObject({ code: 'store-unavailable' })
    })
  })

  it('does not count replicas that were asked for on a new connection', async () => {
    const between = await startTcpProxy(master.url)
    const one = await openIoredis(between.through(master.url))
    opened.push(one)
    const store = redisStore({ client: one.client, replicas: { wait: 1, timeoutMs: followedMsMax } })
    await store.check()
    const { client } = await outside(master)
    wire.silence()
    const claimed = expect(store.claim(claimRequest('a'))).rejects.toMatchObject({
      code: 'store-unavailable',
      message: expect.stringContaining('0 of 1 replicas'),
    })
    const connections = async () => String(await client.call('CLIENT', 'LIST'))
    await expect.poll(connections, { timeout: 10_000 }).toMatch(/ flags=b .* cmd=wait /)
    // The client sends WAIT again on its next connection, where nothing was written.
    between.mend()
    wire.mend()
    await claimed
    await between.close()
  })

  it('loses no claim that it granted when the replica becomes the master', async () => {
    const { followed, alone: store } = await openStores()
    const granted = await own(followed, 'granted')
    wire.silence()
    await expect(store.claim(claimRequest('cut off'))).rejects.toMatchObject({ code: 'store-unavailable' })
    const promoted = await outside(replica)
    await promoted.client.replicaof('NO', 'ONE')
    const next = redisStore({ client: promoted.client })
    expect(await next.claim(claimRequest('granted'))).toMatchObject({
      kind: 'seen',
      record: { claimId: granted.claimId },
    })
    const again = await own(next, 'cut off')
    expect(await next.complete(again, outcome('done'), hourMs)).toBe('written')
  })

  it('loses a claim to a failover where no replica was asked for, as the guide says', async () => {
    const one = await outside(master)
    const store = redisStore({ client: one.client })
    await own(store, 'before')
    wire.silence()
    const first = await own(store, 'twice')
    const promoted = await outside(replica)
    await promoted.client.replicaof('NO', 'ONE')
    const next = redisStore({ client: promoted.client })
    const second = await own(next, 'twice')
    expect(second.fence).toBeGreaterThan(first.fence)
    expect(await next.complete(first, outcome('first'), hourMs)).toBe('claim-lost')
  })
})
