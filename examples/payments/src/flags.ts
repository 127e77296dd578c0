/** The command line of the playground. Bad input is one clear sentence and exit code 2. */
import { parseArgs } from 'node:util'
import type { ProviderAddress } from './provider-client.ts'

export interface Flags {
  /** Where the SQLite file and the provider's ledger live. Absent: a new temporary directory. */
  readonly dir: string | undefined
  /** 0: the kernel chooses. */
  readonly port: number
  /** A PostgreSQL or Redis URL. Absent: SQLite. */
  readonly store: string | undefined
  /** A NATS URL: payments are published there, and a ledger books them. Absent: receipts are printed. */
  readonly broker: string | undefined
  /** A provider that is already running: its URL and that of its controls. Absent: one is started and restarted when it dies. */
  readonly provider: ProviderAddress | undefined
  /** How long the absence of a charge proves nothing. */
  readonly quarantineMs: number
}

/** Long enough to see a payment wait, short enough to see it end. */
const quarantineMsDefault = 10_000

export class BadInput extends Error {}

export const usage = `npm start -- [--dir DIRECTORY] [--port PORT] [--store postgres://USER@HOST/DATABASE or redis://HOST:PORT] [--broker nats://HOST:PORT] [--provider URL,CONTROL-URL] [--quarantine MS]`

export function readFlags(args: readonly string[]): Flags {
  const { dir, port, store, broker, provider, quarantine } = parse(args)
  if (store !== undefined && !/^postgres(ql)?:\/\//.test(store) && !isRedisUrl(store)) {
    throw new BadInput(
      `--store must be a URL of PostgreSQL, such as postgres://user@localhost/shop, or of Redis, such as redis://localhost:6379 (got ${store})`,
    )
  }
  if (broker !== undefined && store !== undefined && isRedisUrl(store)) {
    throw new BadInput(
      '--broker needs the outbox, which commits with the payment, and Redis has no transactions: leave --store out, or use PostgreSQL',
    )
  }
  return {
    dir,
    port: readPort(port),
    store,
    broker: readBroker(broker),
    provider: readProvider(provider),
    quarantineMs: readQuarantine(quarantine),
  }
}

export function isRedisUrl(store: string): boolean {
  return /^rediss?:\/\//.test(store) && URL.canParse(store)
}

type Given = Partial<Record<'dir' | 'port' | 'store' | 'broker' | 'provider' | 'quarantine', string>>

function parse(args: readonly string[]): Given {
  try {
    const text = { type: 'string' } as const
    const options = { dir: text, port: text, store: text, broker: text, provider: text, quarantine: text }
    return parseArgs({ args: [...args], options, strict: true }).values
  } catch (error) {
    throw new BadInput(`${error instanceof Error ? error.message : String(error)}\nUsage: ${usage}`)
  }
}

function readBroker(text: string | undefined): string | undefined {
  if (text === undefined || (/^nats:\/\//.test(text) && URL.canParse(text))) return text
  throw new BadInput(`--broker must be a URL of NATS, such as nats://localhost:4222 (got ${text})`)
}

function readPort(text: string | undefined): number {
  if (text === undefined) return 0
  const port = Number(text)
  if (Number.isInteger(port) && port >= 0 && port <= 65_535) return port
  throw new BadInput(`--port must be a number from 0 to 65535 (got ${text})`)
}

function readProvider(text: string | undefined): ProviderAddress | undefined {
  if (text === undefined) return undefined
  const [url, controlUrl, ...rest] = text.split(',')
  if (
    url !== undefined &&
    controlUrl !== undefined &&
    rest.length === 0 &&
    URL.canParse(url) &&
    URL.canParse(controlUrl)
  ) {
    return { url, controlUrl }
  }
  throw new BadInput(`--provider must be two URLs separated by a comma (got ${text})`)
}

function readQuarantine(text: string | undefined): number {
  if (text === undefined) return quarantineMsDefault
  const quarantineMs = Number(text)
  if (quarantineMs > 0 && Number.isFinite(quarantineMs)) return quarantineMs
  throw new BadInput(`--quarantine must be a number of milliseconds (got ${text})`)
}
