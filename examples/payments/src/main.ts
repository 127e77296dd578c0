/** `npm start`: the payments API and its provider, on SQLite or PostgreSQL. */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { serve, type ServerType } from '@hono/node-server'
import { type Api, paymentsApi } from './api.ts'
import { openDirectory } from './directory.ts'
import { BadInput, type Flags, readFlags } from './flags.ts'
import { type Guide, guideText, playgroundGuide } from './guide.ts'
import { logTelemetry } from './log.ts'
import { postgresDatabase } from './postgres-database.ts'
import { type ProviderAddress, providerClient } from './provider-client.ts'
import type { Provider } from './provider-process.ts'
import { superviseProvider } from './provider-supervisor.ts'
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
  if (flags.store === undefined) return run(flags, directory, await sqliteDatabase(directory))
  return run(flags, directory, await postgresDatabase(flags.store))
}

async function run<Tx>(flags: Flags, directory: string, database: ShopDatabase<Tx>): Promise<void> {
  shutdown.add(() => database.close())
  const log = (line: string) => console.log(line)
  const provider = flags.provider
    ? runningProvider(flags.provider)
    : await superviseProvider(join(directory, 'provider-ledger.jsonl'), log)
  shutdown.add(() => provider.stop())
  // New at each start: a secret that leaked earlier is worthless.
  const webhookSecret = `whsec_${randomBytes(32).toString('base64')}`
  const { quarantineMs } = flags
  let guide: Guide | undefined
  const parts = { database, provider, telemetry: logTelemetry, onReceipt: log, webhookSecret, quarantineMs }
  const api = paymentsApi({ ...parts, guide: () => guide })
  shutdown.add(() => stopApi(api))
  api.workers.start()
  const { server, port } = await listen(api, flags.port)
  shutdown.add(() => void server.close())
  const url = `http://127.0.0.1:${port}`
  guide = playgroundGuide({ url, store: database.name, directory, provider })
  await provider.setWebhook({ url: `${url}/webhooks/provider`, secret: webhookSecret })
  console.log(guideText(guide))
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
