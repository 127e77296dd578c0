import { join } from 'node:path'
import { findProgram, type FoundProgram } from '../brokers/find-program.ts'
import { HOST, kill, launch, type Launched, onFreePort, speaks } from '../brokers/launch.ts'
import { makeDirectory } from '../postgres-directory.ts'
import { ownsPort } from '../processes.ts'

export type NatsServer = {
  /** Stays the same over a restart. */
  readonly url: string
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

// Includes reading its streams after a kill -9.
const READY_LIMIT_MS = 20_000

export function findNats(): FoundProgram {
  return findProgram('nats-server')
}

/** Starts a private nats-server with JetStream on a port the kernel chooses. It ends with this process, even if that is killed. */
export async function startNats(): Promise<NatsServer> {
  const found = findNats()
  if (found.kind === 'missing') throw new Error(`cannot start NATS: ${found.why}`)
  const directory = makeDirectory({})
  const start = (port: number) => launchOn(found.path, directory.path, port)
  const first = await onFreePort('NATS', async port => {
    const launched = await start(port)
    return launched === 'port-taken' ? launched : { launched, port }
  }).catch((error: unknown) => {
    directory.remove()
    throw error
  })
  const { port } = first
  let current = first.launched
  return {
    url: `nats://${HOST}:${port}`,
    port,
    get pid() {
      return current.pid
    },
    async stop() {
      await kill(current)
      directory.remove()
    },
    kill: () => kill(current),
    async restart() {
      await kill(current)
      const again = await start(port)
      if (again === 'port-taken') throw new Error(`NATS could not get its port ${port} back`)
      current = again
    },
  }
}

function launchOn(command: string, directory: string, port: number): Promise<Launched | 'port-taken'> {
  return launch({
    name: 'NATS',
    command,
    args: ['-a', HOST, '-p', String(port), '-js', '-sd', join(directory, 'data')],
    directory,
    readyWithinMs: READY_LIMIT_MS,
    // Its greeting says whether JetStream is there.
    isReady: ({ pid }) => ownsPort(pid, port) !== 'no' && speaks(port, first => first.includes('"jetstream":true')),
  })
}
