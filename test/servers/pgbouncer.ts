import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { chownSync, closeSync, existsSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { afterAll, beforeAll } from 'vitest'
import { describePostgres, describeWith } from './describe-postgres.ts'
import { freePort } from './free-port.ts'
import { installDebianPackage } from './install-postgres.ts'
import { makeDirectory, serverAccount, serverEnv, type Account } from './postgres-directory.ts'
import { ownsPort, until } from './processes.ts'
import { MAY_INSTALL } from './shared-server.ts'

export type PgBouncer = {
  /** The same address with PgBouncer's host and port. */
  through(url: string): string
  stop(): Promise<void>
}

const HOST = '127.0.0.1'
const READY_LIMIT_MS = 20_000
const END_LIMIT_MS = 10_000

export type PoolMode = 'transaction' | 'statement'

/** A suite whose connections go through PgBouncer, in transaction mode unless told otherwise. Both urls are there inside hooks and tests only. */
export function describePgBouncer(
  name: string,
  define: (database: { readonly url: string; readonly directUrl: string }) => void,
  poolMode: PoolMode = 'transaction',
): void {
  const found = findOrInstall()
  if (found.kind === 'missing') return describeWith(name, found.why, () => undefined)
  describePostgres(name, database => {
    let bouncer: PgBouncer | undefined
    beforeAll(async () => {
      bouncer = await startPgBouncer({
        pgbouncer: found.pgbouncer,
        serverPort: Number(new URL(database.url).port),
        poolMode,
      })
    })
    afterAll(() => bouncer?.stop())
    define({
      get url() {
        if (bouncer === undefined) throw new Error('PgBouncer exists inside hooks and tests only: read it there')
        return bouncer.through(database.url)
      },
      get directUrl() {
        return database.url
      },
    })
  })
}

type Found = { kind: 'found'; pgbouncer: string } | { kind: 'missing'; why: string }

function findOrInstall(): Found {
  const found = find()
  if (found.kind === 'found' || process.env[MAY_INSTALL] !== '1') return found
  const installation = installDebianPackage('pgbouncer')
  return installation.kind === 'installed' ? find() : { kind: 'missing', why: `${found.why}; ${installation.why}` }
}

function find(): Found {
  // Debian puts it where only root's PATH looks.
  const directories = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin']
  const pgbouncer = directories.map(directory => join(directory, 'pgbouncer')).find(file => existsSync(file))
  return pgbouncer === undefined
    ? { kind: 'missing', why: 'no pgbouncer on PATH or in /usr/sbin' }
    : { kind: 'found', pgbouncer }
}

type Starting = { pgbouncer: string; serverPort: number; poolMode: PoolMode }

async function startPgBouncer(starting: Starting): Promise<PgBouncer> {
  const account = serverAccount()
  const directory = makeDirectory(account)
  const port = await freePort()
  const child = spawnIn(directory.path, { ...starting, account, port })
  const pid = child.pid
  const ready = await until(
    () => hasEnded(child) || (pid !== undefined && ownsPort(pid, port) !== 'no'),
    READY_LIMIT_MS,
  )
  if (!ready || hasEnded(child)) {
    const log = readFileSync(join(directory.path, 'pgbouncer.log'), 'utf8')
    await end(child)
    directory.remove()
    throw new Error(`PgBouncer on port ${port} did not become ready. Its log:\n${log.slice(-4000)}`)
  }
  return {
    through(url) {
      const changed = new URL(url)
      changed.port = String(port)
      return changed.href
    },
    async stop() {
      await end(child)
      directory.remove()
    },
  }
}

type Spawning = Starting & { account: Account; port: number }

function spawnIn(directory: string, { pgbouncer, account, port, serverPort, poolMode }: Spawning): ChildProcess {
  const users = writeFor(account, join(directory, 'users.txt'), '"postgres" ""\n')
  const config = writeFor(
    account,
    join(directory, 'pgbouncer.ini'),
    `[databases]
* = host=${HOST} port=${serverPort}
[pgbouncer]
listen_addr = ${HOST}
listen_port = ${port}
unix_socket_dir =
auth_type = trust
auth_file = ${users}
pool_mode = ${poolMode}
default_pool_size = 20
max_client_conn = 200
`,
  )
  const logFd = openSync(join(directory, 'pgbouncer.log'), 'w')
  const child = spawn(pgbouncer, [config], {
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

function writeFor({ uid, gid }: Account, file: string, text: string): string {
  writeFileSync(file, text)
  if (uid !== undefined && gid !== undefined) chownSync(file, uid, gid)
  return file
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null
}

/** At once: its clients are gone when a suite ends, and nothing of it has to be kept. */
async function end(child: ChildProcess): Promise<void> {
  child.kill('SIGTERM')
  if (await until(() => hasEnded(child), END_LIMIT_MS)) return
  child.kill('SIGKILL')
  await until(() => hasEnded(child), END_LIMIT_MS)
}
