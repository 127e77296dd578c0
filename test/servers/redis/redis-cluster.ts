import { Redis } from 'ioredis'
import { freePort } from '../free-port.ts'
import { until } from '../processes.ts'
import { startTcpProxy, type TcpProxy } from '../tcp-proxy.ts'
import { type RedisServer, type RedisSettings, startRedis } from './redis-server.ts'

export type RedisCluster = {
  /** The masters, each with a third of the slots. */
  readonly servers: readonly RedisServer[]
  stop(): Promise<void>
}

export type DivisibleCluster = RedisCluster & {
  /** One for each master, in their order. */
  readonly replicas: readonly RedisServer[]
  /** As the nodes announce themselves. The first master is behind a proxy. */
  readonly addresses: readonly Address[]
  /** The same addresses, and the ways to them of a client that stays with the first master when the cluster is divided. */
  readonly beside: ReadonlyMap<string, Address>
  /** The first master is cut off from all others, and from clients that use its announced address. */
  divide(): void
  mend(): void
}

export type Address = { readonly host: string; readonly port: number }

const SLOTS = 16_384
const READY_LIMIT_MS = 30_000
const HOST = '127.0.0.1'
/** Where the connections of the first master come from, so that proxies know them. */
const FIRST_FROM = '127.0.0.2'

/** How long a master may be silent before the others replace it, and before it stops by itself. */
export const nodeTimeoutMs = 2_000

/** Three masters without replicas. */
export async function startRedisCluster(): Promise<RedisCluster> {
  const servers: RedisServer[] = []
  const stop = async () => void (await Promise.all(servers.map(server => server.stop())))
  try {
    const nodes = await Promise.all([1, 2, 3].map(() => startNode(servers)))
    await joined(nodes, 3)
    return { servers, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

/** Three masters, a replica of each, and proxies by which the first master can be cut off. */
export async function startDivisibleCluster(): Promise<DivisibleCluster> {
  const started: RedisServer[] = []
  const proxies: TcpProxy[] = []
  const stop = async () => {
    await Promise.all(started.map(server => server.stop()))
    await Promise.all(proxies.map(proxy => proxy.close()))
  }
  const proxyTo = async (port: number) => {
    const proxy = await startTcpProxy(`redis://${HOST}:${port}`)
    proxies.push(proxy)
    return proxy
  }
  try {
    const nodes = [
      await startNode(started, { 'bind-source-addr': FIRST_FROM }),
      ...(await Promise.all([1, 2, 3, 4, 5].map(() => startNode(started)))),
    ]
    const buses = await Promise.all(nodes.map(({ busPort }) => proxyTo(busPort)))
    const [first, ...others] = nodes.map(({ server }) => server)
    if (first === undefined) throw new Error('a cluster has a first server')
    const toFirst = await proxyTo(first.port)
    const besideFirst = await Promise.all(others.map(({ port }) => proxyTo(port)))
    const announced = nodes.map(({ server }, n) => ({
      server,
      port: n === 0 ? toFirst.port : server.port,
      busPort: buses[n]?.port ?? 0,
    }))
    await joined(announced, 3)
    const addresses = announced.map(({ port }) => ({ host: HOST, port }))
    const ways = [first.port, ...besideFirst.map(({ port }) => port)].map(port => ({ host: HOST, port }))
    return {
      servers: nodes.slice(0, 3).map(({ server }) => server),
      replicas: nodes.slice(3).map(({ server }) => server),
      addresses,
      beside: new Map(addresses.map(({ host, port }, n) => [`${host}:${port}`, ways[n] ?? { host, port }])),
      divide() {
        const [busOfFirst, ...otherBuses] = buses
        for (const proxy of [busOfFirst, toFirst, ...besideFirst]) proxy?.silence()
        for (const proxy of otherBuses) proxy.silence(FIRST_FROM)
      },
      mend() {
        for (const proxy of proxies) proxy.mend()
      },
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

type Node = { readonly server: RedisServer; readonly port: number; readonly busPort: number }

async function startNode(started: RedisServer[], more: RedisSettings = {}): Promise<Node> {
  // By itself, a server adds 10,000 to its port, which may be more than there are.
  const busPort = await freePort()
  const server = await startRedis({
    'cluster-enabled': 'yes',
    'cluster-port': String(busPort),
    'cluster-node-timeout': String(nodeTimeoutMs),
    'cluster-announce-ip': HOST,
    'repl-diskless-sync-delay': '0',
    ...more,
  })
  started.push(server)
  return { server, port: server.port, busPort }
}

/** `nodes`: with the ports that they are to be known by. The first so many are masters, and each of the others a replica of one of them. */
async function joined(nodes: readonly Node[], masters: number): Promise<void> {
  const clients = nodes.map(({ server }) => new Redis(server.url))
  try {
    for (const [n, client] of clients.entries()) {
      await client.config('SET', 'cluster-announce-port', String(nodes[n]?.port))
      await client.config('SET', 'cluster-announce-bus-port', String(nodes[n]?.busPort))
    }
    const [first] = clients
    for (const { port, busPort } of nodes.slice(1)) await first?.call('CLUSTER', 'MEET', HOST, port, busPort)
    await all(
      clients,
      'known to each other',
      async client => (await infoOf(client, 'cluster_known_nodes')) === nodes.length,
    )
    await shareSlots(clients.slice(0, masters))
    for (const [n, client] of clients.slice(masters).entries()) {
      await client.call('CLUSTER', 'REPLICATE', String(await clients[n % masters]?.call('CLUSTER', 'MYID')))
    }
    await all(clients, 'ready', isReady)
  } finally {
    for (const client of clients) client.disconnect()
  }
}

async function shareSlots(masters: readonly Redis[]): Promise<void> {
  const share = Math.ceil(SLOTS / masters.length)
  for (const [n, client] of masters.entries()) {
    const last = Math.min((n + 1) * share, SLOTS) - 1
    await client.call('CLUSTER', 'ADDSLOTSRANGE', n * share, last)
  }
}

async function isReady(client: Redis): Promise<boolean> {
  if (!String(await client.call('CLUSTER', 'INFO')).includes('cluster_state:ok')) return false
  const replication = String(await client.info('replication'))
  return replication.includes('role:master') || replication.includes('master_link_status:up')
}

async function infoOf(client: Redis, field: string): Promise<number> {
  const text = String(await client.call('CLUSTER', 'INFO'))
  return Number(new RegExp(`${field}:(\\d+)`).exec(text)?.[1])
}

async function all(clients: readonly Redis[], what: string, holds: (client: Redis) => Promise<boolean>): Promise<void> {
  const held = async () => (await Promise.all(clients.map(holds))).every(Boolean)
  if (!(await until(held, READY_LIMIT_MS))) throw new Error(`the servers were not ${what} within ${READY_LIMIT_MS} ms`)
}
