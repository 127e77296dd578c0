/** `npm start`: the payments API and its provider, on SQLite or PostgreSQL. */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { serve, type ServerType } from '@hono/node-server'
import { type Api, paymentsApi } from './api.ts'
import { openDirectory } from './directory.ts'
import { BadInput, type Flags, readFlags } from './flags.ts'
import { startLines } from './lines.ts'
import { logTelemetry } from './log.ts'
import { postgresDatabase } from './postgres-database.ts'
import { type ProviderAddress, providerClient } from './provider-client.ts'
import type { Provider } from './provider-process.ts'
import { superviseProvider } from './provider-supervisor.ts'
import type { ShopDatabase } from './shop-database.ts'
import { sqliteDatabase } from './sqlite-database.ts'

try {
  await start(readFlags(process.argv.slice(2)))
} catch (error) {
  if (!(error instanceof BadInput)) throw error
  console.error(error.message)
  process.exit(2)
}

async function start(flags: Flags): Promise<void> {
  const directory = openDirectory(flags.dir)
  if (flags.store === undefined) return run(flags, directory, await sqliteDatabase(directory))
  return run(flags, directory, await postgresDatabase(flags.store))
}

async function run<Tx>(flags: Flags, directory: string, database: ShopDatabase<Tx>): Promise<void> {
  const log = (line: string) => console.log(line)
  const provider = flags.provider
    ? runningProvider(flags.provider)
    : await superviseProvider(join(directory, 'provider-ledger.jsonl'), log)
  // New at each start: a secret that leaked earlier is worthless.
  const webhookSecret = `whsec_${randomBytes(32).toString('base64')}`
  const { quarantineMs } = flags
  const api = paymentsApi({ database, provider, telemetry: logTelemetry, onReceipt: log, webhookSecret, quarantineMs })
  api.workers.start()
  const running = { api, provider, database }
  try {
    const { server, port } = await listen(api, flags.port)
    const stop = () => void stopAll({ ...running, server })
    process.once('SIGINT', stop)
    process.once('SIGTERM', stop)
    // If another program started this one, it stops with that program, however that ends.
    process.once('disconnect', stop)
    const url = `http://127.0.0.1:${port}`
    await provider.setWebhook({ url: `${url}/webhooks/provider`, secret: webhookSecret })
    const { pid: providerPid, controlUrl } = provider
    console.log(startLines({ url, store: database.name, directory, providerPid, controlUrl }))
  } catch (error) {
    await stopParts(running)
    throw error
  }
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

interface Running<Tx> {
  readonly api: Api
  readonly provider: Provider
  readonly database: ShopDatabase<Tx>
}

async function stopAll<Tx>(running: Running<Tx> & { readonly server: ServerType }): Promise<void> {
  console.log('stopping …')
  running.server.close()
  await stopParts(running)
  process.exit(0)
}

async function stopParts<Tx>({ api, provider, database }: Running<Tx>): Promise<void> {
  await api.workers.drain()
  await api.latchkey.close()
  await api.workers.stop()
  await provider.stop()
  await database.close()
}
