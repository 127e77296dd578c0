/** The story as a person starts it, in this tree or in a copy of it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { processesInGroup, signal } from '../../../test/servers/processes.ts'

export interface Told {
  readonly code: unknown
  readonly said: string
  /** Processes that it left behind; they are ended. */
  readonly leftBehind: number
}

export const root = fileURLToPath(new URL('../../..', import.meta.url))
const running = new Set<ChildProcess>()

export async function runStory(tree: string, ...flags: string[]): Promise<Told> {
  const args = ['--import', 'tsx', '--conditions=latchkey-source', 'examples/payments/src/story/main.ts', ...flags]
  const child = spawn(process.execPath, args, { cwd: tree, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  running.add(child)
  let said = ''
  child.stdout.on('data', chunk => (said += String(chunk)))
  child.stderr.on('data', chunk => (said += String(chunk)))
  const [code]: unknown[] = await once(child, 'exit')
  const leftBehind = endGroup(child)
  running.delete(child)
  return { code, said, leftBehind }
}

/** Whatever a failed test has left. */
export function endTheRest(): void {
  for (const child of running) endGroup(child)
}

function endGroup({ pid }: ChildProcess): number {
  if (pid === undefined) return 0
  const left = processesInGroup(pid).length
  if (left > 0) signal(-pid, 'SIGKILL')
  return left
}
