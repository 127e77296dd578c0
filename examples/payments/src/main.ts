/** `npm start`: the payments API and its provider, on SQLite, PostgreSQL or Redis; with a broker its ledger, too. */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { serve, type ServerType } from '@hono/node-server'
import { type Api, type ApiParts, type Page, paymentsApi } from './api.ts'
import { openDirectory } from './directory.ts'
import { BadInput, type Flags, isRedisUrl, readFlags } from './flags.ts'
import { type Guide, guideText, playgroundGuide, type Started } from './guide.ts'
import { bookPayments } from './ledger/book-payments.ts'
import { logTelemetry } from './log.ts'
import { openOperators } from './page/operators.ts'
import { pageRoutes } from './page/routes.ts'
import { receiptTarget } from './pay.ts'
import { postgresDatabase } from './postgres-database.ts'
import { type ProviderAddress, providerClient } from './provider-client.ts'
import type { Provider } from './provider-process.ts'
import { superviseProvider } from './provider-supervisor.ts'
import { leftOutOnRedis, redisApi } from './redis-api.ts'
import { redisKeys } from './redis-keys.ts'
import type { ShopDatabase } from './shop-database.ts'
import { openShutdown } from './shutdown.ts'
import { sqliteDatabase } from './sqlite-database.ts'

const shutdown = openShutdown()
try {
  await start(readFlags(process.argv.slice(2)))
} catch (error) {
  await shutdown.run()
  if (!(error instanceof BadInput)) throw error
  console.error(error.message)
  process.exit(2)
}

async function start(flags: Flags): Promise<void> {
  const directory = openDirectory(flags.dir)
  if (flags.store === undefined) return run(flags, directory, onDatabase(await sqliteDatabase(directory)))
  if (isRedisUrl(flags.store)) return run(flags, directory, await onRedis(flags.store))
  return run(flags, directory, onDatabase(await postgresDatabase(flags.store)))
}

function log(line: string): void {
  console.log(line)
}

/** The API on a store. */
interface Shop extends Pick<Started, 'store' | 'leftOut'> {
  open(parts: Omit<ApiParts<never>, 'database'>): Api
  close(): Promise<void>
  /** Nobody can write for this long. Resolves when it has begun. */
  pause(ms: number): Promise<void>
}

function onDatabase<Tx>(database: ShopDatabase<Tx>): Shop {
  return {
    store: database.name,
    leftOut: undefined,
    open: parts => paymentsApi({ ...parts, database }),
    close: () => database.close(),
    pause: ms => database.pause(ms),
  }
}

async function onRedis(url: string): Promise<Shop> {
  const { store, name, close, pause } = await redisKeys(url)
  return { store: name, leftOut: leftOutOnRedis, open: parts => redisApi({ ...parts, store }), close, pause }
}

async function run(flags: Flags, directory: string, { open, close, pause, ...shop }: Shop): Promise<void> {
  shutdown.add(close)
  const { broker, store } = flags
  const books = broker === undefined ? undefined : await bookPayments({ broker, store, directory }, log)
  shutdown.add(() => books?.stop())
  const provider = flags.provider
    ? runningProvider(flags.provider)
    : await superviseProvider(join(directory, 'provider-ledger.jsonl'), log)
  shutdown.add(() => provider.stop())
  // New at each start: a secret that leaked earlier is worthless.
  const webhookSecret = `whsec_${randomBytes(32).toString('base64')}`
  const { quarantineMs } = flags
  let guide: Guide | undefined
  const receipts = books?.receipts ?? receiptTarget(log)
  let url = ''
  const operators = openOperators(() => url)
  const page: Page = (app, latchkey) => {
    operators.mount(app, latchkey)
    pageRoutes(app, { guide: () => guide, provider, pause })
  }
  const api = open({ provider, telemetry: logTelemetry, webhookSecret, quarantineMs, receipts, page })
  shutdown.add(() => stopApi(api))
  api.workers.start()
  const { server, port } = await listen(api, flags.port)
  shutdown.add(() => void server.close())
  url = `http://127.0.0.1:${port}`
  guide = playgroundGuide({ ...shop, url, directory, provider, books })
  await provider.setWebhook({ url: `${url}/webhooks/provider`, secret: webhookSecret })
  console.log(guideText(guide, `${operators.told()}\n`))
}

/** Another program starts and stops it. */
function runningProvider(address: ProviderAddress): Provider {
  return { ...providerClient(address), ...address, pid: undefined, exited: new Promise(() => {}), async stop() {} }
}

function listen({ app }: Api, port: number): Promise<{ server: ServerType; port: number }> {
  return new Promise((resolve, reject) => {
    const server = serve({ fetch: app.fetch, port, hostname: '127.0.0.1' }, info =>
      resolve({ server, port: info.port }),
    )
    server.once('error', (error: NodeJS.ErrnoException) => {
      reject(
        new BadInput(
          error.code === 'EADDRINUSE'
            ? `port ${port} is in use. Choose another with --port, or leave --port out`
            : error.message,
        ),
      )
    })
  })
}

async function stopApi({ workers, latchkey }: Api): Promise<void> {
  await workers.drain()
  await latchkey.close()
  await workers.stop()
}
