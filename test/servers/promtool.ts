import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { MAY_INSTALL } from './shared-server.ts'

export type FoundPromtool = { kind: 'found'; promtool: string } | { kind: 'missing'; why: string }

/** Unpacked here and not installed: the package would bring a service. */
const CACHE = fileURLToPath(new URL('../../node_modules/.cache/latchkey-prometheus', import.meta.url))
const UNPACKED = join(CACHE, 'unpacked')
const PACKAGE = 'prometheus'

/** On PATH, or out of Debian's package, which is downloaded once where we may. */
export function findPromtool(): FoundPromtool {
  const promtool = [...(process.env['PATH'] ?? '').split(delimiter), join(UNPACKED, 'usr/bin')]
    .map(directory => join(directory, 'promtool'))
    .find(file => existsSync(file))
  if (promtool !== undefined) return { kind: 'found', promtool }
  const missing = 'no promtool on PATH'
  if (process.env[MAY_INSTALL] !== '1') return { kind: 'missing', why: `${missing}; \`npm test\` downloads it` }
  if (!existsSync('/usr/bin/apt-get')) return { kind: 'missing', why: `${missing}; downloading it needs apt-get` }
  return unpack() ? findUnpacked() : { kind: 'missing', why: `${missing}, and it could not be downloaded` }
}

function findUnpacked(): FoundPromtool {
  const promtool = join(UNPACKED, 'usr/bin/promtool')
  return existsSync(promtool) ? { kind: 'found', promtool } : { kind: 'missing', why: `no promtool in ${PACKAGE}` }
}

function unpack(): boolean {
  rmSync(CACHE, { recursive: true, force: true })
  mkdirSync(CACHE, { recursive: true })
  if (!ran('apt-get', 'download', PACKAGE) && !(ran('apt-get', 'update') && ran('apt-get', 'download', PACKAGE))) {
    return false
  }
  const archive = readdirSync(CACHE).find(file => file.endsWith('.deb'))
  const isUnpacked = archive !== undefined && ran('dpkg', '-x', archive, UNPACKED)
  if (archive !== undefined) rmSync(join(CACHE, archive))
  return isUnpacked
}

function ran(command: string, ...args: string[]): boolean {
  console.log(`tests: ${command} ${args.join(' ')}`)
  // As for PostgreSQL: a slow mirror is waited for.
  const { status, stderr } = spawnSync(command, args, { cwd: CACHE, timeout: 600_000, encoding: 'utf8' })
  if (status !== 0) console.error(stderr)
  return status === 0
}
