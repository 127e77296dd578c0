/** The shape of a configuration file, and its check. */
import type { LatchkeyWithoutTransactions } from 'latchkey'
import type { Reconciler } from 'latchkey/reconcile'
import type { WorkerName, Workers } from 'latchkey/workers'
import { usage } from '../program/exit.ts'

/** What may be set by a flag, by `LATCHKEY_…` and in a file. A flag wins over the environment, and that over a file. */
export interface Profile {
  /**
   * The name of the environment variable with the address of the store, or an address without a password, such as `sqlite:./app.db`. Default:
   * `DATABASE_URL`. postgres://, sqlite: and redis:// are known.
   */
  readonly store?: string
  /** The schema of Latchkey's tables in PostgreSQL. Default: `latchkey`. */
  readonly schema?: string
  /** The address of an admin API. With it, commands go there and not to the store. */
  readonly server?: string
  /** A file with the token for `server`. The token itself may be in `LATCHKEY_TOKEN`, and nowhere else. */
  readonly tokenFile?: string
  /** How long a command may wait for the store or the server. Default: `30s`. */
  readonly timeout?: string
  /** Default: `auto`, colours on a terminal. */
  readonly color?: 'auto' | 'always' | 'never'
  /** Times as instants in UTC, instead of how long ago. Default: false. */
  readonly utc?: boolean
}

export interface Config extends Profile {
  /** Settings for `--profile <name>`, which win over those beside it. */
  readonly profiles?: Readonly<Record<string, Profile>>
  /**
   * The application's own code, for the commands that need it: `work`, `unknown look-up`, and what `doctor` says about operations. Called by these only,
   * and closed when they end.
   */
  readonly application?: () => Application | Promise<Application>
}

export interface Application {
  /** What `createLatchkey` returned. */
  readonly latchkey: Pick<LatchkeyWithoutTransactions<never>, 'identify' | 'inspect' | 'close'>
  /** For look-ups by hand. */
  readonly reconciler?: Reconciler
  /** For `work`. Absent: `createWorkers(latchkey)` with the workers that need no options. */
  readonly workers?: (options: { readonly only?: readonly WorkerName[] }) => Workers
  /** Ends what it opened, such as a pool. */
  readonly close?: () => Promise<unknown>
}

const texts = ['store', 'schema', 'server', 'tokenFile', 'timeout']

/** `file`: for the error. */
export function checkedConfig(file: string, value: unknown): Config {
  const config = checkedFields(file, value, ['profiles', 'application'])
  const { profiles = {}, application } = config as { profiles?: unknown; application?: unknown }
  if (application !== undefined && typeof application !== 'function') {
    throw usage(`${file}: application must be a function that returns { latchkey } (got ${typeof application})`)
  }
  if (typeof profiles !== 'object' || profiles === null) throw usage(`${file}: profiles must be an object of settings`)
  for (const [name, profile] of Object.entries(profiles)) checkedFields(`${file}: profile ${name}`, profile, [])
  // Every field was checked above.
  return config as Config
}

function checkedFields(where: string, value: unknown, more: readonly string[]): object {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw usage(`${where} must be an object of settings (got ${value === null ? 'null' : typeof value})`)
  }
  const known = [...texts, 'color', 'utc', ...more]
  for (const [name, given] of Object.entries(value)) {
    if (!known.includes(name))
      throw usage(`${where}: there is no setting ${name}. The settings are ${known.join(', ')}`)
    if (texts.includes(name) && typeof given !== 'string') throw usage(`${where}: ${name} must be a text`)
    if (name === 'color' && !['auto', 'always', 'never'].includes(String(given))) {
      throw usage(`${where}: color must be auto, always or never (got ${String(given)})`)
    }
    if (name === 'utc' && typeof given !== 'boolean') throw usage(`${where}: utc must be true or false`)
  }
  return value
}
