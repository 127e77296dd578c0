/** The command line. Bad input is one clear sentence and exit code 2. */
import { parseArgs } from 'node:util'
import { type EnemyName, enemyNames } from './enemies/names.ts'
import { type StoreKind, storeKinds } from './app/operations.ts'

export interface Flags {
  readonly store: StoreKind
  readonly seconds: number
  readonly seed: number
  readonly enemies: readonly EnemyName[]
}

export class BadInput extends Error {}

export const usage = `npm run siege -- [--store ${storeKinds.join('|')}] [--seconds N] [--seed N] [--enemies ${enemyNames.join(',')}]`

export function readFlags(args: readonly string[]): Flags {
  const given = parse(args)
  return {
    store: readStore(given.store),
    seconds: readNumber('--seconds', given.seconds, 5),
    seed: given.seed === undefined ? Date.now() % 1_000_000 : readNumber('--seed', given.seed, 0),
    enemies: given.enemies === undefined ? enemyNames : given.enemies.split(',').map(readEnemy),
  }
}

function parse(args: readonly string[]) {
  const options = {
    store: { type: 'string', default: 'postgres' },
    seconds: { type: 'string', default: '60' },
    seed: { type: 'string' },
    enemies: { type: 'string' },
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

function readEnemy(text: string): EnemyName {
  const name = enemyNames.find(each => each === text)
  if (name !== undefined) return name
  throw new BadInput(`--enemies must be a comma-separated list of ${enemyNames.join(', ')} (got ${text})`)
}

function readNumber(flag: string, text: string, least: number): number {
  const value = Number(text)
  if (Number.isInteger(value) && value >= least) return value
  throw new BadInput(`${flag} must be an integer of at least ${least} (got ${text})`)
}
