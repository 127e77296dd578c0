/** Starting a subject's server as a child process, and asking it. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Subject } from './subjects.ts'

export interface ServerArgument {
  readonly kind: Subject['kind']
  readonly store: Subject['store']
  /** A file for SQLite, a URL for PostgreSQL. */
  readonly place: string
  readonly workMs: number
}

export interface Proof {
  readonly rows: number
  readonly completed: number
  readonly businessRows: number
}

export interface Server {
  readonly port: number
  proof(): Promise<Proof | undefined>
  settings(): Promise<string>
  stop(): Promise<void>
}

export async function startServer(argument: ServerArgument): Promise<Server> {
  const child = fork(fileURLToPath(new URL('./server.ts', import.meta.url)), [JSON.stringify(argument)])
  const { port } = (await nextMessage(child)) as { port: number }
  return {
    port,
    async proof() {
      child.send('proof')
      return ((await nextMessage(child)) as { proof?: Proof }).proof
    },
    async settings() {
      child.send('settings')
      return ((await nextMessage(child)) as { settings: string }).settings
    },
    async stop() {
      const exited = once(child, 'exit')
      child.disconnect()
      await exited
    },
  }
}

async function nextMessage(child: ChildProcess): Promise<unknown> {
  const exited = once(child, 'exit').then(([code]) => {
    throw new Error(`a server of the benchmark ended with code ${code}`)
  })
  const [message]: unknown[] = await Promise.race([once(child, 'message'), exited])
  return message
}
