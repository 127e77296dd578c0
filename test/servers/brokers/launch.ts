import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { createConnection } from 'node:net'
import { join } from 'node:path'
import { freePort } from '../free-port.ts'
import { until } from '../processes.ts'

export const HOST = '127.0.0.1'

export type Launched = { readonly child: ChildProcess; readonly pid: number; readonly log: () => string }

export type Program = {
  /** For messages. */
  readonly name: string
  readonly command: string
  readonly args: readonly string[]
  readonly env?: NodeJS.ProcessEnv
  /** It runs there: what is left of it is found by that. */
  readonly directory: string
  readonly readyWithinMs: number
  /** Whether it serves. `pid`: of the process that was started. */
  isReady(launched: Launched): boolean | Promise<boolean>
}

const END_LIMIT_MS = 10_000
// Between our look for a free port and the server's bind, another process may take it.
const PORT_TRIES = 5

/** Starts it and waits until it serves. `port-taken`: another process was quicker. */
export async function launch(program: Program): Promise<Launched | 'port-taken'> {
  const { name, command, args, env = process.env, directory, readyWithinMs } = program
  const logFile = join(directory, 'server.log')
  const logFd = openSync(logFile, 'w')
  // A session of its own: Ctrl-C at the terminal ends the tests, and the server only after them.
  const child = spawn(command, args, { cwd: directory, env, detached: true, stdio: ['ignore', logFd, logFd] })
  closeSync(logFd)
  child.unref()
  const spawnError = new Promise<Error>(resolve => child.once('error', resolve))
  const { pid } = child
  if (pid === undefined) throw await spawnError
  const launched = { child, pid, log: () => readFileSync(logFile, 'utf8') }
  await until(async () => hasEnded(child) || program.isReady(launched), readyWithinMs)
  if (!hasEnded(child) && (await program.isReady(launched))) return launched
  await kill(launched)
  if (/address already in use|eaddrinuse/i.test(launched.log())) return 'port-taken'
  throw new Error(`${name} (pid ${pid}) did not become ready. Its log:\n${launched.log().slice(-4000)}`)
}

export async function onFreePort<T>(name: string, start: (port: number) => Promise<T | 'port-taken'>): Promise<T> {
  for (let tried = 0; tried < PORT_TRIES; tried += 1) {
    const result = await start(await freePort())
    if (result !== 'port-taken') return result
  }
  throw new Error(`${name} found its port taken ${PORT_TRIES} times in a row`)
}

/** kill -9; returns when it is gone. */
export async function kill({ child, pid }: Pick<Launched, 'child' | 'pid'>): Promise<void> {
  child.kill('SIGKILL')
  if (!(await until(() => hasEnded(child), END_LIMIT_MS))) throw new Error(`process ${pid} survives SIGKILL`)
}

/** Whether the server at this port begins to speak as expected. */
export function speaks(port: number, expected: (first: Buffer) => boolean, hello?: Buffer): Promise<boolean> {
  return new Promise(resolve => {
    const socket = createConnection({ host: HOST, port }, () => void (hello && socket.write(hello)))
    const end = (answer: boolean) => {
      socket.destroy()
      resolve(answer)
    }
    socket.setTimeout(2_000, () => end(false))
    socket.on('error', () => end(false))
    socket.on('end', () => end(false))
    socket.on('data', data => end(expected(data)))
  })
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null
}
