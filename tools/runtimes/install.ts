/**
 * The Node binaries that test/runtimes/package-lock.json pins, installed when they are first needed. The folder is no
 * workspace: there, each package would put its `node` in front of the one that runs npm's scripts.
 */
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Runtime } from './run-on-each.ts'

const folder = fileURLToPath(new URL('../../test/runtimes/', import.meta.url))
const run = promisify(execFile)

export async function installRuntimes(): Promise<readonly Runtime[]> {
  const pinned = await pinnedRuntimes()
  if (await areInstalled(pinned)) return pinned
  console.log(`Installing Node ${pinned.map(({ version }) => version).join(', ')} in test/runtimes`)
  await run('npm', ['ci'], { cwd: folder })
  if (!(await areInstalled(pinned)))
    throw new Error('npm ci in test/runtimes did not install the versions of its lock file')
  return pinned
}

async function pinnedRuntimes(): Promise<Runtime[]> {
  const lock: { packages: Record<string, { version?: string }> } = JSON.parse(
    await readFile(`${folder}package-lock.json`, 'utf8'),
  )
  return Object.entries(lock.packages).flatMap(([path, { version = '' }]) =>
    path === '' ? [] : [{ version, directory: `${folder}${path}/bin` }],
  )
}

async function areInstalled(runtimes: readonly Runtime[]): Promise<boolean> {
  const found = await Promise.all(runtimes.map(versionOf))
  return runtimes.every(({ version }, at) => found[at] === `v${version}`)
}

async function versionOf({ directory }: Runtime): Promise<string | undefined> {
  try {
    return (await run(`${directory}/node`, ['--version'])).stdout.trim()
  } catch {
    return undefined
  }
}
