/** One run: everything is started, harmed, calmed, asked once more, and stopped. What happened is in the directory then. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { postgresStore } from 'latchkey/stores/postgres'
import { startPostgres } from '../../test/servers/postgres.ts'
import { startProvider } from '../../examples/payments/src/provider-process.ts'
import { bundleApp } from './bundle.ts'
import { ledgerFile } from './check-files.ts'
import type { ClientsArgument, ToClients } from './clients.ts'
import { collectFacts, drain, withClient } from './collect.ts'
import type { Flags } from './flags.ts'
import { startFleet } from './fleet.ts'
import { type NemesisEvent, openHistory } from './history.ts'
import { runNemesis } from './nemesis.ts'
import { randomFrom } from './random.ts'
import { startReceipts } from './receipts.ts'
import { shopTables } from './shop.ts'
import { openWire } from './wire.ts'

/** Small pools, and each another: heartbeats, workers and handlers have to share what there is. */
const poolSizes = [2, 3, 4, 8] as const
/** Short, so that a dead owner is replaced soon; long enough that a busy machine does not lose a live one. */
const leaseMs = 4_000
/** Many, because some of them always wait for a lease to end. */
const clients = 32
const drainLimitMs = 60_000

export async function run({ seed, seconds, dedup }: Flags, directory: string): Promise<void> {
  const ending: (() => unknown)[] = []
  const endAll = async () => {
    for (const end of ending.splice(0).reverse()) await end()
  }
  try {
    const bundle = await bundleApp()
    ending.push(() => bundle.remove())
    const server = await startPostgres({ settings: { idle_in_transaction_session_timeout: '8s' } })
    ending.push(() => server.stop())
    await prepare(server.url)
    const provider = await startProvider(join(directory, ledgerFile))
    ending.push(() => provider.stop())
    await provider.setIdempotency(dedup)
    const receipts = await startReceipts(directory, randomFrom(seed, 'receipts'))
    ending.push(() => receipts.close())
    const wires = await Promise.all(poolSizes.map(() => openWire(server.url)))
    ending.push(() => Promise.all(wires.map(wire => wire.close())))
    const users = startClients({ directory, seed, clients })
    ending.push(() => users.kill())
    const log = openHistory<NemesisEvent>(directory, 'nemesis')
    const random = randomFrom(seed, 'fleet')
    const tell = (message: ToClients) => void (users.connected && users.send(message))
    const fleet = await startFleet({
      bundle,
      arguments: wires.map((wire, index) => ({
        name: String(index),
        directory,
        databaseUrl: wire.url,
        poolMax: poolSizes[index] ?? 4,
        providerUrl: provider.url,
        receiptsUrl: receipts.url,
        dedup,
        leaseMs,
      })),
      random,
      log,
      onChange: urls => tell({ urls: urls.filter(url => url !== undefined) }),
      selfStopMs: () => leaseMs + random.between(500, 6_000),
    })
    ending.push(() => fleet.stop())

    const poison = () => tell({ poison: true })
    await runNemesis({ seconds, seed, leaseMs, fleet, wires, server, provider, log, poison })
    console.log('the faults have stopped; asking everything once more')
    receipts.calm()
    await fleet.calm()
    const finished = once(users, 'message')
    tell({ finish: true })
    await finished
    const left = await drain(server.url, drainLimitMs)
    if (left > 0) console.log(`${left} rows still move after ${drainLimitMs} ms`)
    await fleet.stop()
    await collectFacts(server.url, directory)
  } finally {
    await endAll()
  }
}

async function prepare(databaseUrl: string): Promise<void> {
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 2 })
  await postgresStore({ pool }).migrate()
  await pool.end()
  await withClient(databaseUrl, client => client.query(shopTables))
}

function startClients(argument: ClientsArgument): ChildProcess {
  return fork(fileURLToPath(new URL('./clients.ts', import.meta.url)), [JSON.stringify(argument)], {
    execArgv: ['--import', 'tsx', '--conditions=latchkey-source'],
  })
}
