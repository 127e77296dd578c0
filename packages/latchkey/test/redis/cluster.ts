import { Redis } from 'ioredis'
import { until } from '../../../../test/servers/processes.ts'
import { type RedisServer, startRedis } from '../../../../test/servers/redis/redis-server.ts'

export type RedisCluster = {
  readonly servers: readonly RedisServer[]
  stop(): Promise<void>
}

const SLOTS = 16_384
const READY_LIMIT_MS = 30_000

/** Three masters without replicas, each with a third of the slots. */
export async function startRedisCluster(): Promise<RedisCluster> {
  const settings = { 'cluster-enabled': 'yes', 'cluster-node-timeout': '2000' }
  const servers = await Promise.all([1, 2, 3].map(() => startRedis(settings)))
  const clients = servers.map(({ url }) => new Redis(url))
  const stop = async () => {
    for (const client of clients) client.disconnect()
    await Promise.all(servers.map(server => server.stop()))
  }
  try {
    await join(clients, servers)
  } catch (error) {
    await stop()
    throw error
  }
  for (const client of clients) client.disconnect()
  return { servers, stop }
}

async function join(clients: readonly Redis[], servers: readonly RedisServer[]): Promise<void> {
  const share = Math.ceil(SLOTS / clients.length)
  for (const [n, client] of clients.entries()) {
    const last = Math.min((n + 1) * share, SLOTS) - 1
    await client.call('CLUSTER', 'ADDSLOTSRANGE', n * share, last)
  }
  const [first] = clients
  for (const { host, port } of servers.slice(1)) await first?.call('CLUSTER', 'MEET', host, port)
  const isReady = async (client: Redis) => String(await client.call('CLUSTER', 'INFO')).includes('cluster_state:ok')
  const ready = await until(async () => (await Promise.all(clients.map(isReady))).every(Boolean), READY_LIMIT_MS)
  if (!ready) throw new Error(`the cluster was not ready within ${READY_LIMIT_MS} ms`)
}
