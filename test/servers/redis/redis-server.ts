import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { createConnection } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { freePort } from '../free-port.ts'
import { makeDirectory } from '../postgres-directory.ts'
import { ownsPort, until } from '../processes.ts'
import { findRedis } from './redis-binary.ts'

export type RedisServer = {
  /** Stays the same over a restart. */
  readonly url: string
  readonly host: string
  readonly port: number
  /** Another one after each restart. */
  readonly pid: number
  /** Ends it at once and removes its directory. */
  stop(): Promise<void>
  /** kill -9; returns when it is gone. Its files stay. */
  kill(): Promise<void>
  /** Starts it again on the same port and with the same files, after a kill. */
  restart(): Promise<void>
}

export type RedisSettings = Readonly<Record<string, string>>

const HOST = '127.0.0.1'

// Between our look for a free port and the server's bind, another process may take it.
const PORT_TRIES = 5
// Includes reading the log after a kill -9.
const READY_LIMIT_MS = 20_000
const END_LIMIT_MS = 10_000

/** A log, as an installation that keeps keys has it. What was acknowledged is in it when the process is killed, whatever `appendfsync` is. */
const DEFAULTS: RedisSettings = {
  bind: HOST,
  appendonly: 'yes',
  appendfsync: 'everysec',
  save: '',
  maxmemory: '0',
  'enable-debug-command': 'yes',
}

/** Starts a private Redis on a port the kernel chooses. It ends with this process, even if that is killed. */
export async function startRedis(settings: RedisSettings = {}): Promise<RedisServer> {
  const flags = Object.entries({ ...DEFAULTS, ...settings }).flatMap(([name, value]) => [`--${name}`, value])
  return startWith(() => flags)
}

/** A sentinel. It keeps what it learns in the file that it is given, which begins with these lines. */
export async function startSentinel(lines: readonly string[]): Promise<RedisServer> {
  return startWith(directory => {
    const file = join(directory, 'sentinel.conf')
    writeFileSync(file, [`bind ${HOST}`, ...lines, ''].join('\n'))
    return [file, '--sentinel']
  })
}

/** `argumentsIn`: those of the server, beside its port and its directory. */
async function startWith(argumentsIn: (directory: string) => readonly string[]): Promise<RedisServer> {
  const found = findRedis()
  if (found.kind === 'missing') throw new Error(`cannot start Redis: ${found.why}`)
  const directory = makeDirectory({})
  const given = argumentsIn(directory.path)
  const start = (port: number) => launch(found.redis, { directory: directory.path, port, given })
  try {
    return serverOf(await startOnFreePort(start), { start, remove: directory.remove })
  } catch (error) {
    directory.remove()
    throw error
  }
}

type Launched = { child: ChildProcess; pid: number; port: number }
type Start = (port: number) => Promise<Launched | 'port-taken'>

function serverOf(first: Launched, { start, remove }: { start: Start; remove: () => void }): RedisServer {
  const { port } = first
  let current = first
  return {
    url: `redis://${HOST}:${port}`,
    host: HOST,
    port,
    get pid() {
      return current.pid
    },
    async stop() {
      await kill(current.child)
      remove()
    },
    kill: () => kill(current.child),
    async restart() {
      await kill(current.child)
      current = await startAgain(start, port)
    },
  }
}

/** While it was away, a connection to somewhere else may have got the number of its port: it ends sooner or later. */
async function startAgain(start: Start, port: number): Promise<Launched> {
  const endMs = performance.now() + READY_LIMIT_MS
  for (;;) {
    const again = await start(port)
    if (again !== 'port-taken') return again
    if (performance.now() > endMs) throw new Error(`Redis could not get its port ${port} back`)
    await delay(100)
  }
}

async function startOnFreePort(start: Start): Promise<Launched> {
  for (let tried = 0; tried < PORT_TRIES; tried += 1) {
    const result = await start(await freePort())
    if (result !== 'port-taken') return result
  }
  throw new Error(`Redis found its port taken ${PORT_TRIES} times in a row`)
}

type LaunchOptions = { directory: string; port: number; given: readonly string[] }

async function launch(redis: string, { directory, port, given }: LaunchOptions): Promise<Launched | 'port-taken'> {
  const data = join(directory, 'data')
  mkdirSync(data, { recursive: true })
  const log = join(directory, 'server.log')
  const logFd = openSync(log, 'w')
  // A session of its own: Ctrl-C at the terminal ends the tests, and the server only after them.
  const child = spawn(redis, [...given, '--port', String(port), '--dir', data], {
    cwd: directory,
    detached: true,
    stdio: ['ignore', logFd, logFd],
  })
  closeSync(logFd)
  child.unref()
  const spawnError = new Promise<Error>(resolve => child.once('error', resolve))
  const { pid } = child
  if (pid === undefined) throw await spawnError
  await until(async () => hasEnded(child) || (ownsPort(pid, port) !== 'no' && isServing(port)), READY_LIMIT_MS)
  if (!hasEnded(child) && (await isServing(port))) return { child, pid, port }
  await kill(child)
  const text = readFileSync(log, 'utf8')
  if (text.includes('Address already in use')) return 'port-taken'
  throw new Error(`Redis (pid ${pid}, port ${port}) did not become ready. Its log:\n${text.slice(-4000)}`)
}

/** While it reads its log it answers every command with LOADING. */
function isServing(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const socket = createConnection({ host: HOST, port }, () => socket.write('PING\r\n'))
    const end = (serving: boolean) => {
      socket.destroy()
      resolve(serving)
    }
    socket.setTimeout(2_000, () => end(false))
    socket.on('error', () => end(false))
    socket.on('data', data => end(data.toString().startsWith('+PONG')))
  })
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null
}

async function kill(child: ChildProcess): Promise<void> {
  child.kill('SIGKILL')
  if (!(await until(() => hasEnded(child), END_LIMIT_MS))) throw new Error(`Redis (pid ${child.pid}) survives SIGKILL`)
}
