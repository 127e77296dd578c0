/** The command line of the playground. Bad input is one clear sentence and exit code 2. */
import { parseArgs } from 'node:util'

export interface Flags {
  /** Where the SQLite file and the provider's ledger live. Absent: a new temporary directory. */
  readonly dir: string | undefined
  /** 0: the kernel chooses. */
  readonly port: number
  /** A PostgreSQL URL. Absent: SQLite. */
  readonly store: string | undefined
}

export class BadInput extends Error {}

export const usage = `npm start -- [--dir DIRECTORY] [--port PORT] [--store postgres://USER@HOST/DATABASE]`

export function readFlags(args: readonly string[]): Flags {
  const { dir, port, store } = parse(args)
  if (store !== undefined && !/^postgres(ql)?:\/\//.test(store)) {
    throw new BadInput(`--store takes a PostgreSQL URL such as postgres://user@localhost/shop, and got ${store}`)
  }
  return { dir, port: readPort(port), store }
}

function parse(args: readonly string[]): { dir?: string; port?: string; store?: string } {
  try {
    const options = { dir: { type: 'string' }, port: { type: 'string' }, store: { type: 'string' } } as const
    return parseArgs({ args: [...args], options, strict: true }).values
  } catch (error) {
    throw new BadInput(`${error instanceof Error ? error.message : String(error)}\nUsage: ${usage}`)
  }
}

function readPort(text: string | undefined): number {
  if (text === undefined) return 0
  const port = Number(text)
  if (Number.isInteger(port) && port >= 0 && port <= 65_535) return port
  throw new BadInput(`--port takes a number from 0 to 65535, and got ${text}`)
}
