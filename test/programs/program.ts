/** A program that tests start again and again, bundled once for each process that runs tests. */
import { type ChildProcess, fork } from 'node:child_process'
import { basename } from 'node:path'
import { type Bundle, bundle } from './bundle.ts'

const bundles = new Map<string, Promise<Bundle>>()

/** The path of a file that `node` runs as it is. It goes when this process ends. */
export async function programOf(source: URL): Promise<string> {
  const known = bundles.get(source.href)
  const bundled = known ?? bundle(`program-${bundles.size}`, [source])
  bundles.set(source.href, bundled)
  const { pathOf, remove } = await bundled
  if (known === undefined) process.once('exit', remove)
  return pathOf(basename(source.pathname, '.ts'))
}

export interface ForkOptions {
  readonly execArgv?: readonly string[]
  /** What the process writes goes to `child.stdout` and `child.stderr` instead of the terminal. */
  readonly silent?: boolean
}

/** A process of its own with a channel for messages. */
export async function forkProgram(
  source: URL,
  args: readonly string[],
  { execArgv = [], silent = false }: ForkOptions = {},
): Promise<ChildProcess> {
  return fork(await programOf(source), args, { execArgv: [...execArgv], silent })
}
