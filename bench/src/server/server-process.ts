/** Starting a subject's server as a child process, and asking it. */
import { startChild } from '../machine/child.ts'
import type { Proof, ServerArgument } from './server.ts'

export interface Server {
  readonly port: number
  readonly pid: number
  /** How often the handler ran so far; unlike a proof it costs nothing. */
  runs(): Promise<number>
  proof(): Promise<Proof>
  settings(): Promise<string>
  reaper(state: 'on' | 'off'): Promise<void>
  /** Off: handlers answer at once. */
  work(state: 'on' | 'off'): Promise<void>
  /** Counts the bytes that the process allocates on its heap. `end` returns them. */
  allocations(step: 'start' | 'end'): Promise<number>
  stop(): Promise<void>
  kill(): Promise<void>
}

export async function startServer(program: string, argument: ServerArgument): Promise<Server> {
  const child = await startChild(program, [JSON.stringify(argument)])
  const { port } = child.ready as { port: number }
  return {
    port,
    pid: child.pid,
    runs: async () => (await child.ask('runs')) as number,
    proof: async () => (await child.ask('proof')) as Proof,
    settings: async () => (await child.ask('settings')) as string,
    reaper: async state => void (await child.ask(`reaper ${state}`)),
    work: async state => void (await child.ask(`work ${state}`)),
    allocations: async step => (await child.ask(`allocations ${step}`)) as number,
    stop: child.stop,
    kill: child.kill,
  }
}
