/** One run: starts everything, breaks it, stops the faults, sends every request again, and collects the histories. */
import { type ChildProcess, fork } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startPostgres } from '../../test/servers/postgres.ts'
import { type RedisCache, startRedisCache } from '../../test/servers/redis/redis-cache.ts'
import { startProvider } from '../../examples/payments/src/provider-process.ts'
import { bundle } from '../../test/programs/bundle.ts'
import type { RedisPlace } from './app/keys.ts'
import { ledgerFile } from './check/read-evidence.ts'
import type { ClientsArgument, ToClients } from './clients/clients.ts'
import { collectFacts, drain, withClient } from './collect.ts'
import type { Flags } from './flags.ts'
import { startFleet } from './fleet.ts'
import { type NemesisEvent, openHistory } from './history.ts'
import type { KeyServer } from './keys/key-server.ts'
import { postgresKeys } from './keys/postgres-keys.ts'
import { redisKeys } from './keys/redis-keys.ts'
import { startWebhookDelivery } from './clients/webhook-delivery.ts'
import { runNemesis } from './faults/nemesis.ts'
import { settleOne } from './clients/operator.ts'
import { randomFrom } from './random.ts'
import { startReceipts } from './clients/receipts.ts'
import { repeatableRows, shopTables } from './app/shop.ts'
import type { StoreKind } from './store-kind.ts'
import { openProxy, type Proxy } from './faults/proxy.ts'
import { withoutFence } from './faults/without-fence.ts'

/** Small pools of different sizes, which heartbeats, workers and handlers have to share. */
const poolSizes = [3, 5, 8, 12] as const
/** Short, so that a dead owner is replaced soon; long enough that a busy machine does not lose a live one. */
const leaseMs = 5_000
/** Many, because some of them always wait for a lease to end. */
const clients = 24
const drainLimitMs = 120_000
/**
 * Longer than any charge can be late after its row became unknown: a process may be stopped between its intent and its call, stop
 * itself again when it resumes, and then meet a slow provider.
 */
const quarantineMs = 25_000

export async function run(flags: Flags, directory: string): Promise<void> {
  const { store, seed, seconds, dedup, webhooks } = flags
  const ending: (() => unknown)[] = []
  const endAll = async () => {
    for (const end of ending.splice(0).reverse()) await end()
  }
  try {
    const sources = ['app/app.ts', 'faults/clock-off.ts'].map(name => new URL(name, import.meta.url))
    const programs = await bundle('torture', sources, flags.withoutFence ? withoutFence : [])
    ending.push(() => programs.remove())
    const { databaseUrl, keys, cache, proxies } = await startServers(store, ending)
    const provider = await startProvider(join(directory, ledgerFile))
    ending.push(() => provider.stop())
    await provider.setIdempotency(dedup)
    const receipts = await startReceipts(directory, randomFrom(seed, 'receipts'))
    ending.push(() => receipts.close())
    const users = startClients({ directory, seed, clients, store })
    ending.push(() => users.kill())
    const log = openHistory<NemesisEvent>(directory, 'nemesis')
    const random = randomFrom(seed, 'fleet')
    const tell = (message: ToClients) => void (users.connected && users.send(message))
    const secret = `whsec_${randomBytes(24).toString('base64')}`
    let urls: readonly string[] = []
    if (webhooks) {
      const delivery = await startWebhookDelivery({
        directory,
        secret,
        random: randomFrom(seed, 'mail'),
        urls: () => urls,
      })
      ending.push(() => delivery.close())
      await provider.setWebhook({ url: delivery.url, secret })
    }
    const shared = { directory, providerUrl: provider.url, receiptsUrl: receipts.url, dedup, webhookSecret: secret }
    const fleet = await startFleet({
      programs,
      arguments: proxies.map(({ url }, index) => {
        const ofCache = cache && { cache: redisPlace(cache.url, index) }
        const places =
          store === 'redis' ? { databaseUrl, redis: redisPlace(url, index) } : { databaseUrl: url, ...ofCache }
        const own = { name: String(index), ...places, poolMax: poolSizes[index] ?? 4 }
        return { ...shared, ...own, leaseMs, quarantineMs }
      }),
      random,
      log,
      onChange(now) {
        urls = now.filter(url => url !== undefined)
        tell({ urls: [...urls] })
      },
      selfStopMs: () => leaseMs + random.between(500, 6_000),
    })
    ending.push(() => fleet.stop())

    const looking = { keys, charges: () => provider.ledger(), url: () => urls[0] }
    const people = { poison: () => tell({ poison: true }), settleOne: () => settleOne(looking) }
    await runNemesis({ seconds, seed, leaseMs, fleet, proxies, store, keys, cache, provider, log, ...people })
    console.log('the faults have stopped; sending every request again')
    receipts.calm()
    await fleet.calm()
    const finished = once(users, 'message')
    tell({ finish: true })
    await finished
    const left = await drain(keys, drainLimitMs)
    if (left > 0) console.log(`${left} rows are still not at rest after ${drainLimitMs} ms`)
    await fleet.stop()
    await collectFacts({ databaseUrl, keys, directory, terms: { store, quarantineMs, dedup, webhooks } })
  } finally {
    await endAll()
  }
}

interface Servers {
  /** Direct. */
  readonly databaseUrl: string
  readonly keys: KeyServer
  /** In front of the keys, with `--store tiered`. */
  readonly cache: RedisCache | undefined
  /** To the keys, one for each application process. */
  readonly proxies: readonly Proxy[]
}

async function startServers(store: StoreKind, ending: (() => unknown)[]): Promise<Servers> {
  const database = await startPostgres({ settings: { idle_in_transaction_session_timeout: '8s' } })
  ending.push(() => database.stop())
  const tables = store === 'redis' ? shopTables + repeatableRows : shopTables
  await withClient(database.url, client => client.query(tables))
  const keys = store === 'redis' ? await redisKeys() : await postgresKeys(database)
  ending.push(() => keys.stop())
  const cache = store === 'tiered' ? await startRedisCache() : undefined
  ending.push(() => cache?.stop())
  const proxies = await Promise.all(poolSizes.map(() => openProxy(keys.url, keys.lastWord)))
  ending.push(() => Promise.all(proxies.map(proxy => proxy.close())))
  return { databaseUrl: database.url, keys, cache, proxies }
}

/** Both clients share the rows. */
function redisPlace(url: string, index: number): RedisPlace {
  return { url, client: index % 2 === 0 ? 'ioredis' : 'node-redis' }
}

function startClients(argument: ClientsArgument): ChildProcess {
  return fork(fileURLToPath(new URL('./clients/clients.ts', import.meta.url)), [JSON.stringify(argument)], {
    execArgv: ['--import', 'tsx', '--conditions=latchkey-source'],
  })
}
