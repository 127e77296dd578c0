/** One run: starts everything, breaks it, stops the faults, sends every request again, and collects the histories. */
import { type ChildProcess, fork } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { postgresStore } from 'latchkey/stores/postgres'
import { startPostgres } from '../../test/servers/postgres.ts'
import { startProvider } from '../../examples/payments/src/provider-process.ts'
import { bundle } from '../../test/programs/bundle.ts'
import { ledgerFile } from './check-files.ts'
import type { ClientsArgument, ToClients } from './clients.ts'
import { collectFacts, drain, unknownsTable, withClient } from './collect.ts'
import type { Flags } from './flags.ts'
import { startFleet } from './fleet.ts'
import { type NemesisEvent, openHistory } from './history.ts'
import { startMailman } from './mailman.ts'
import { runNemesis } from './nemesis.ts'
import { settleOne } from './operator.ts'
import { randomFrom } from './random.ts'
import { startReceipts } from './receipts.ts'
import { shopTables } from './shop.ts'
import { openWire } from './wire.ts'

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

export async function run({ seed, seconds, dedup, webhooks }: Flags, directory: string): Promise<void> {
  const ending: (() => unknown)[] = []
  const endAll = async () => {
    for (const end of ending.splice(0).reverse()) await end()
  }
  try {
    const sources = ['app.ts', 'clock-off.ts'].map(name => new URL(name, import.meta.url))
    const programs = await bundle('torture', sources)
    ending.push(() => programs.remove())
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
    const secret = `whsec_${randomBytes(24).toString('base64')}`
    let urls: readonly string[] = []
    if (webhooks) {
      const mailman = await startMailman({ directory, secret, random: randomFrom(seed, 'mail'), urls: () => urls })
      ending.push(() => mailman.close())
      await provider.setWebhook({ url: mailman.url, secret })
    }
    const shared = { directory, providerUrl: provider.url, receiptsUrl: receipts.url, dedup, webhookSecret: secret }
    const fleet = await startFleet({
      programs,
      arguments: wires.map(({ url: databaseUrl }, index) => {
        const own = { name: String(index), databaseUrl, poolMax: poolSizes[index] ?? 4 }
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

    const looking = { databaseUrl: server.url, charges: () => provider.ledger(), url: () => urls[0] }
    const people = { poison: () => tell({ poison: true }), settleOne: () => settleOne(looking) }
    await runNemesis({ seconds, seed, leaseMs, fleet, wires, server, provider, log, ...people })
    console.log('the faults have stopped; sending every request again')
    receipts.calm()
    await fleet.calm()
    const finished = once(users, 'message')
    tell({ finish: true })
    await finished
    const left = await drain(server.url, drainLimitMs)
    if (left > 0) console.log(`${left} rows are still not at rest after ${drainLimitMs} ms`)
    await fleet.stop()
    const terms = { quarantineMs, dedup, webhooks }
    await collectFacts({ databaseUrl: server.url, directory, terms })
  } finally {
    await endAll()
  }
}

async function prepare(databaseUrl: string): Promise<void> {
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 2 })
  await postgresStore({ pool }).migrate()
  await pool.end()
  await withClient(databaseUrl, client => client.query(shopTables + unknownsTable))
}

function startClients(argument: ClientsArgument): ChildProcess {
  return fork(fileURLToPath(new URL('./clients.ts', import.meta.url)), [JSON.stringify(argument)], {
    execArgv: ['--import', 'tsx', '--conditions=latchkey-source'],
  })
}
