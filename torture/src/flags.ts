/** The command line. Bad input is one clear sentence and exit code 2. */
import { parseArgs } from 'node:util'
import { type StoreKind, storeKinds } from './store-kind.ts'

export interface Flags {
  /** Where the keys are. The shop's own rows are in PostgreSQL in any case. */
  readonly store: StoreKind
  readonly seconds: number
  readonly seed: number
  /** Whether the provider recognises our keys, and the effect declares `dedup`. */
  readonly dedup: boolean
  /** Whether the provider sends webhooks about its charges. */
  readonly webhooks: boolean
  /** Breaks the store on Redis, to see that the run notices. */
  readonly withoutFence: boolean
  /** The directory for histories. Absent: a new temporary one. */
  readonly dir: string | undefined
  /** Only check the histories of an earlier run. */
  readonly check: string | undefined
}

export class BadInput extends Error {}

export const usage = `npm run torture -- [--store ${storeKinds.join('|')}] [--seconds N] [--seed N] [--dedup on|off] [--webhooks on|off] [--without-fence] [--dir DIRECTORY] [--check DIRECTORY]`

export function readFlags(args: readonly string[]): Flags {
  const given = parse(args)
  return {
    store: readStore(given.store),
    seconds: readNumber('--seconds', given.seconds, 1),
    seed: given.seed === undefined ? Date.now() % 1_000_000 : readNumber('--seed', given.seed, 0),
    dedup: readSwitch('--dedup', given.dedup),
    webhooks: readSwitch('--webhooks', given.webhooks),
    withoutFence: readWithoutFence(given),
    dir: given.dir,
    check: given.check,
  }
}

function parse(args: readonly string[]) {
  const options = {
    store: { type: 'string', default: 'postgres' },
    seconds: { type: 'string', default: '60' },
    seed: { type: 'string' },
    dedup: { type: 'string', default: 'on' },
    webhooks: { type: 'string', default: 'on' },
    'without-fence': { type: 'boolean', default: false },
    dir: { type: 'string' },
    check: { type: 'string' },
  } as const
  try {
    return parseArgs({ args: [...args], options, strict: true }).values
  } catch (error) {
    throw new BadInput(`${error instanceof Error ? error.message : String(error)}\nUsage: ${usage}`)
  }
}

function readStore(text: string): StoreKind {
  const store = storeKinds.find(kind => kind === text)
  if (store !== undefined) return store
  throw new BadInput(`--store must be one of ${storeKinds.join(', ')} (got ${text})`)
}

function readWithoutFence(given: { store: string; 'without-fence': boolean }): boolean {
  if (given['without-fence'] && given.store !== 'redis') throw new BadInput('--without-fence needs --store redis')
  return given['without-fence']
}

function readSwitch(flag: string, text: string): boolean {
  if (text === 'on' || text === 'off') return text === 'on'
  throw new BadInput(`${flag} must be on or off (got ${text})`)
}

function readNumber(flag: string, text: string, least: number): number {
  const value = Number(text)
  if (Number.isInteger(value) && value >= least) return value
  throw new BadInput(`${flag} must be an integer of at least ${least} (got ${text})`)
}
