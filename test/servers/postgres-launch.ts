import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import type { Account } from './postgres-directory.ts'
import { serverEnv } from './postgres-directory.ts'
import { ownsPort, processesInside, signal, until } from './processes.ts'

export type LaunchOptions = {
  postgres: string
  account: Account
  directory: string
  dataDir: string
  settings: Record<string, string>
  host: string
  port: number
}

export type Launched = {
  kind: 'launched'
  port: number
  pid: number
  /** Orderly, then by force when that takes too long. Does nothing to a server already gone. */
  end(): Promise<void>
  kill(): Promise<void>
}

// Includes the replay of what was written before a kill -9.
const READY_LIMIT_MS = 60_000
const ORDERLY_LIMIT_MS = 15_000
const KILL_LIMIT_MS = 15_000

/**
 * Runs `postgres` as a direct child: Node then collects it at once after a kill -9, whereas a daemon's corpse would keep
 * `postmaster.pid` valid until pid 1 gets round to it, and a restart would be refused for seconds.
 */
export async function launch(options: LaunchOptions): Promise<Launched | { kind: 'port-taken' }> {
  const logFile = join(options.directory, 'server.log')
  const child = spawnServer(options, logFile)
  const spawnError = new Promise<Error>(resolve => child.once('error', resolve))
  const pid = child.pid
  if (pid === undefined) throw await spawnError

  const ready = await until(async () => hasEnded(child) || isServing(pid, options), READY_LIMIT_MS)
  if (ready && !hasEnded(child)) {
    return {
      kind: 'launched',
      port: options.port,
      pid,
      end: () => end(child, options),
      kill: () => kill(child, options),
    }
  }
  await kill(child, options)
  const log = readFileSync(logFile, 'utf8')
  if (log.includes('Address already in use')) return { kind: 'port-taken' }
  throw new Error(`PostgreSQL (pid ${pid}, port ${options.port}) did not become ready. Its log:\n${log.slice(-4000)}`)
}

function spawnServer(
  { postgres, account, directory, dataDir, settings, port }: LaunchOptions,
  log: string,
): ChildProcess {
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const logFd = openSync(log, 'w')
  // A session of its own: Ctrl-C at the terminal ends the tests, and the server only after them.
  const child = spawn(postgres, ['-D', dataDir, '-p', String(port), ...flags], {
    ...account,
    cwd: directory,
    env: serverEnv(),
    detached: true,
    stdio: ['ignore', logFd, logFd],
  })
  closeSync(logFd)
  child.unref()
  return child
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null
}

async function isServing(pid: number, { host, port, dataDir }: LaunchOptions): Promise<boolean> {
  if (ownsPort(pid, port) === 'no') return false
  const client = new pg.Client({ host, port, user: 'postgres', database: 'postgres', connectionTimeoutMillis: 5_000 })
  client.on('error', () => undefined)
  try {
    await client.connect()
    const { rows } = await client.query<{ directory: string }>("select current_setting('data_directory') as directory")
    return rows[0]?.directory === dataDir
  } catch {
    // "The database system is starting up" comes as an error too.
    return false
  } finally {
    await client.end().catch(() => undefined)
  }
}

async function end(child: ChildProcess, options: LaunchOptions): Promise<void> {
  if (!hasEnded(child)) {
    child.kill('SIGINT')
    await until(() => hasEnded(child), ORDERLY_LIMIT_MS)
  }
  await kill(child, options)
}

async function kill(child: ChildProcess, { dataDir }: LaunchOptions): Promise<void> {
  const gone = await until(() => {
    const left = processesInside(dataDir)
    // The postmaster first: it would take the death of a child for a crash and start recovery.
    if (!hasEnded(child)) child.kill('SIGKILL')
    for (const pid of left) signal(pid, 'SIGKILL')
    return left.length === 0 && hasEnded(child)
  }, KILL_LIMIT_MS)
  if (!gone)
    throw new Error(`processes of PostgreSQL in ${dataDir} survive SIGKILL: ${processesInside(dataDir).join(', ')}`)
}
