import { Redis } from 'ioredis'
import { until } from '../processes.ts'
import { startTcpProxy } from '../tcp-proxy.ts'
import { type RedisServer, startRedis, startSentinel } from './redis-server.ts'

export type RedisSentinels = {
  readonly master: RedisServer
  readonly replicas: readonly RedisServer[]
  /** The name that sentinels know the master by. */
  readonly name: string
  readonly sentinels: readonly { readonly host: string; readonly port: number }[]
  /** kill -9 of the master. */
  killMaster(): Promise<void>
  /** The master is cut off from its replicas, from the sentinels, and from clients that ask these for its address. Clients with its own address still reach it. */
  divide(): Promise<void>
  mend(): void
  /** One of the replicas has become the master. */
  promoted(): Promise<boolean>
  /** Every sentinel names that replica. From then on it stays the master. */
  agreed(): Promise<boolean>
  stop(): Promise<void>
}

const NAME = 'shop'
const READY_LIMIT_MS = 30_000
const DOWN_AFTER_MS = 1_000
/** Before the failover that a test asks for, and after it: on a busy machine any server may be silent for a second, and would be replaced. */
const PATIENT_MS = 120_000
/** Sentinels that did not agree on one of them vote again after twice this time. */
const FAILOVER_TIMEOUT_MS = 5_000

/** A master, two replicas of it, and three sentinels. The replicas and the sentinels see the master through a proxy. */
export async function startSentinels(): Promise<RedisSentinels> {
  const ending: (() => Promise<unknown>)[] = []
  const stop = async () => {
    for (const end of ending.splice(0).toReversed()) await end()
  }
  const running = (server: RedisServer) => {
    ending.push(() => server.stop())
    return server
  }
  try {
    const master = running(await startRedis({ 'repl-diskless-sync-delay': '0' }))
    const wire = await startTcpProxy(master.url)
    ending.push(() => wire.close())
    const following = { replicaof: `127.0.0.1 ${wire.port}`, 'repl-diskless-sync-delay': '0' }
    const replicas = await Promise.all([1, 2].map(async () => running(await startRedis(following))))
    const lines = [
      `sentinel monitor ${NAME} 127.0.0.1 ${wire.port} 2`,
      `sentinel down-after-milliseconds ${NAME} ${PATIENT_MS}`,
      `sentinel failover-timeout ${NAME} ${FAILOVER_TIMEOUT_MS}`,
    ]
    const sentinels = await Promise.all([1, 2, 3].map(async () => running(await startSentinel(lines))))
    await ready(replicas, sentinels)
    const wait = (ms: number) => Promise.all(sentinels.map(sentinel => setPatience(sentinel, ms)))
    return {
      master,
      replicas,
      name: NAME,
      sentinels: sentinels.map(({ host, port }) => ({ host, port })),
      async killMaster() {
        await master.kill()
        await wait(DOWN_AFTER_MS)
      },
      async divide() {
        wire.silence()
        await wait(DOWN_AFTER_MS)
      },
      mend: () => wire.mend(),
      promoted: async () => (await masterAmong(replicas)) !== undefined,
      async agreed() {
        const promoted = await masterAmong(replicas)
        const named = await Promise.all(sentinels.map(namedBy))
        if (promoted === undefined || named.some(port => port !== promoted.port)) return false
        // Not sooner: a patient sentinel that has not heard of the promotion takes the old master for alive, and makes the new one its replica again.
        await wait(PATIENT_MS)
        return true
      },
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

/** The replicas have all that the master has, and each sentinel knows them and the two others. */
async function ready(replicas: readonly RedisServer[], sentinels: readonly RedisServer[]): Promise<void> {
  const known = `name=${NAME},status=ok,`
  const isReady = async () => {
    const followers = await Promise.all(replicas.map(replica => infoOf(replica, 'replication')))
    if (!followers.every(info => info.includes('master_link_status:up'))) return false
    const infos = await Promise.all(sentinels.map(server => infoOf(server, 'sentinel')))
    return infos.every(info => info.includes(known) && info.includes('slaves=2,sentinels=3'))
  }
  if (!(await until(isReady, READY_LIMIT_MS)))
    throw new Error(`the sentinels were not ready within ${READY_LIMIT_MS} ms`)
}

function infoOf(server: RedisServer, section: string): Promise<string> {
  return askServer(server, ['INFO', section])
}

async function masterAmong(replicas: readonly RedisServer[]): Promise<RedisServer | undefined> {
  // A sentinel closes the connections of the server that it promotes, ours among them: then the next look tells.
  const infos = await Promise.all(replicas.map(replica => infoOf(replica, 'replication').catch(() => '')))
  return replicas[infos.findIndex(info => info.includes('role:master'))]
}

/** The port of the server that this sentinel sends clients to. */
async function namedBy(sentinel: RedisServer): Promise<number> {
  const [, port] = (await askServer(sentinel, ['SENTINEL', 'GET-MASTER-ADDR-BY-NAME', NAME])).split(',')
  return Number(port)
}

async function setPatience(sentinel: RedisServer, ms: number): Promise<void> {
  await askServer(sentinel, ['SENTINEL', 'SET', NAME, 'down-after-milliseconds', String(ms)])
}

async function askServer({ url }: RedisServer, [command, ...args]: readonly [string, ...string[]]): Promise<string> {
  const client = new Redis(url, { retryStrategy: () => null, lazyConnect: true })
  client.on('error', () => {})
  try {
    await client.connect()
    return String(await client.call(command, ...args))
  } finally {
    client.disconnect()
  }
}
