/** A private Redis, for the peers whose recommended store it is: append-only file, synced every second. */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { makeDirectory } from '../../../test/servers/postgres-directory.ts'
import { ownsPort, until } from '../../../test/servers/processes.ts'

export interface RedisServer {
  readonly pid: number
  readonly version: string
  /** The address of a logical database that nobody has used yet. */
  freshDatabase(): string
  stop(): Promise<void>
}

const readyLimitMs = 10_000
export const redisSettings = 'appendonly=yes appendfsync=everysec'

/** Undefined with a reason where there is none and none can be installed. */
export async function startRedis(): Promise<RedisServer | { readonly missing: string }> {
  const program = findRedis() ?? installRedis()
  if (program === undefined)
    return { missing: 'no redis-server on PATH, and it cannot be installed here: needs root, apt-get, and no systemd' }
  // What lives in this directory is ended even if we are killed.
  const directory = makeDirectory({})
  const port = await freePort()
  const durable = ['--appendonly', 'yes', '--appendfsync', 'everysec', '--save', '']
  const place = ['--port', String(port), '--bind', '127.0.0.1', '--dir', directory.path, '--databases', '256']
  const child = spawn(program, [...place, ...durable], { stdio: 'ignore', cwd: directory.path })
  const pid = child.pid ?? -1
  const ready = await until(() => child.exitCode !== null || ownsPort(pid, port) === 'yes', readyLimitMs)
  if (!ready || child.exitCode !== null) throw new Error(`Redis did not become ready on port ${port}`)
  let databases = 0
  return {
    pid,
    freshDatabase: () => `redis://127.0.0.1:${port}/${databases++}`,
    version: /v=(\S+)/.exec(execFileSync(program, ['--version'], { encoding: 'utf8' }))?.[1] ?? 'of unknown version',
    async stop() {
      await end(child)
      directory.remove()
    },
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGTERM')
  await exited
}

function findRedis(): string | undefined {
  const { status, stdout } = spawnSync('sh', ['-c', 'command -v redis-server'], { encoding: 'utf8' })
  return status === 0 ? stdout.trim() : undefined
}

function installRedis(): string | undefined {
  if (process.getuid?.() !== 0 || !existsSync('/usr/bin/apt-get')) return undefined
  // There the package would start a server of its own, which nobody asked for.
  if (existsSync('/run/systemd/system')) return undefined
  console.log('bench: apt-get install redis-server')
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  for (const args of [['update'], ['install', '-y', '--no-install-recommends', 'redis-server']]) {
    const { status } = spawnSync('/usr/bin/apt-get', args, { env, stdio: 'ignore', timeout: 600_000 })
    if (status !== 0) return undefined
  }
  return findRedis()
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
