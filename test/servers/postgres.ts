import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from './free-port.ts'
import { findPostgres } from './postgres-binaries.ts'
import { initialise, makeDirectory, serverAccount } from './postgres-directory.ts'
import { launch } from './postgres-launch.ts'
import type { Launched } from './postgres-launch.ts'

export { findPostgres } from './postgres-binaries.ts'

export type PostgresServer = {
  /** Of the database `postgres`, as its superuser. Stays the same over a restart. */
  readonly url: string
  readonly host: string
  readonly port: number
  /** The postmaster's; another one after each restart. */
  readonly pid: number
  readonly dataDir: string
  readonly settings: Readonly<Record<string, string>>
  /** Ends it in order and removes its directory. */
  stop(): Promise<void>
  /** kill -9 of the postmaster and all of its children; returns when none is left. The data stay. */
  kill(): Promise<void>
  /** Starts it again on the same port, after a kill or, in order, while it runs. */
  restart(): Promise<void>
}

const HOST = '127.0.0.1'

// Between our look for a free port and the server's bind, another process may take it.
const PORT_TRIES = 5

// After a kill the old port may be lent to a stranger's outgoing connection for a moment; the url must not change.
const SAME_PORT_LIMIT_MS = 30_000

const DEFAULTS: Readonly<Record<string, string>> = {
  listen_addresses: HOST,
  max_connections: '200',
  shared_buffers: '128MB',
}

/** Starts a private PostgreSQL on a port the kernel chooses. It ends with this process, even if that is killed. */
export async function startPostgres(options: { settings?: Record<string, string> } = {}): Promise<PostgresServer> {
  const found = findPostgres()
  if (found.kind === 'missing') throw new Error(`cannot start PostgreSQL: ${found.why}`)
  const account = serverAccount()
  const directory = makeDirectory(account)
  const settings = { ...DEFAULTS, unix_socket_directories: directory.path, ...options.settings }
  try {
    const dataDir = await initialise(found.initdb, directory.path, account)
    const start = (port: number) =>
      launch({ postgres: found.postgres, account, directory: directory.path, dataDir, settings, host: HOST, port })
    return serverOf(await startOnFreePort(start), { start, dataDir, settings, remove: directory.remove })
  } catch (error) {
    directory.remove()
    throw error
  }
}

type Start = (port: number) => ReturnType<typeof launch>
type Parts = { start: Start; dataDir: string; settings: Record<string, string>; remove: () => void }

function serverOf(first: Launched, { start, dataDir, settings, remove }: Parts): PostgresServer {
  const { port } = first
  let current = first
  return {
    url: `postgres://postgres@${HOST}:${port}/postgres`,
    host: HOST,
    port,
    get pid() {
      return current.pid
    },
    dataDir,
    settings,
    async stop() {
      await current.end()
      remove()
    },
    kill: () => current.kill(),
    async restart() {
      await current.end()
      current = await startOnSamePort(start, port)
    },
  }
}

async function startOnFreePort(start: Start): Promise<Launched> {
  for (let tried = 0; tried < PORT_TRIES; tried += 1) {
    const result = await start(await freePort())
    if (result.kind === 'launched') return result
  }
  throw new Error(`PostgreSQL found its port taken ${PORT_TRIES} times in a row`)
}

async function startOnSamePort(start: Start, port: number): Promise<Launched> {
  const end = performance.now() + SAME_PORT_LIMIT_MS
  while (performance.now() < end) {
    const result = await start(port)
    if (result.kind === 'launched') return result
    await sleep(200)
  }
  throw new Error(`PostgreSQL could not get its port ${port} back within ${SAME_PORT_LIMIT_MS} ms`)
}
