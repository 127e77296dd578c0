/** The processes of the story: the provider, and the API with its ledger, which is killed and restarted on the same files and port. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Provider, startProvider } from '../provider-process.ts'
import { until } from './waiting.ts'

export interface Stage {
  readonly url: string
  /** Where the ledger is controlled. Empty without a broker. */
  readonly ledgerUrl: string
  readonly provider: Provider
  /** kill -9: no shutdown code runs. */
  killApi(): Promise<void>
  startApi(): Promise<void>
  stop(): Promise<void>
}

export interface StageOptions {
  readonly directory: string
  /** A PostgreSQL URL. Absent: SQLite. */
  readonly store: string | undefined
  /** A NATS URL. Absent: no ledger. */
  readonly broker: string | undefined
  readonly quarantineMs: number
}

const startLimitMs = 40_000
const stopLimitMs = 15_000

export async function openStage(options: StageOptions): Promise<Stage> {
  const provider = await startProvider(join(options.directory, 'provider-ledger.jsonl'))
  let api: ChildProcess | undefined
  let url = ''
  let ledgerUrl = ''
  const stage: Stage = {
    provider,
    get url() {
      return url
    },
    get ledgerUrl() {
      return ledgerUrl
    },
    async killApi() {
      if (api !== undefined) await end(api, 'SIGKILL')
    },
    async startApi() {
      const port = url === '' ? '0' : new URL(url).port
      api = launch(provider, options, port)
      ;({ url, ledgerUrl } = await printedUrls(api))
    },
    async stop() {
      if (api !== undefined) await end(api, 'SIGTERM')
      await provider.stop()
    },
  }
  try {
    await stage.startApi()
    return stage
  } catch (error) {
    await stage.stop()
    throw error
  }
}

function launch(
  provider: Provider,
  { directory, store, broker, quarantineMs }: StageOptions,
  port: string,
): ChildProcess {
  const main = fileURLToPath(new URL('../main.ts', import.meta.url))
  const flags = ['--dir', directory, '--port', port, '--provider', `${provider.url},${provider.controlUrl}`]
  if (store !== undefined) flags.push('--store', store)
  if (broker !== undefined) flags.push('--broker', broker)
  flags.push('--quarantine', String(quarantineMs))
  // The channel carries no messages. It closes when the story ends, however it ends, and the API exits with it.
  return spawn(process.execPath, ['--import', 'tsx', '--conditions=latchkey-source', main, ...flags], {
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
}

/** Both streams are read to the end: a full pipe would stop the API. */
async function printedUrls(api: ChildProcess): Promise<{ url: string; ledgerUrl: string }> {
  let text = ''
  const collect = (chunk: unknown) => {
    text = (text + String(chunk)).slice(-20_000)
  }
  api.stdout?.on('data', collect)
  api.stderr?.on('data', collect)
  let found: string | undefined
  await until(
    'the API has started',
    () => {
      if (hasEnded(api)) throw new Error(`the API did not start:\n${text}`)
      found ??= /playground at (http:\/\/127\.0\.0\.1:\d+)/.exec(text)?.[1]
      return found !== undefined && text.includes('Ctrl-C stops')
    },
    startLimitMs,
  )
  return { url: found ?? '', ledgerUrl: /controlled at (\S+)/.exec(text)?.[1] ?? '' }
}

async function end(child: ChildProcess, signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
  if (hasEnded(child)) return
  const exited = once(child, 'exit')
  child.kill(signal)
  const limit = setTimeout(() => child.kill('SIGKILL'), stopLimitMs)
  await exited
  clearTimeout(limit)
}

function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null
}
