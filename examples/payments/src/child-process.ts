/** The playground's other processes: forked, ready when they have sent their first message, and stopped with SIGTERM. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Supervised } from './supervise.ts'

export interface Started extends Supervised {
  /** What it said when it was ready. */
  readonly message: unknown
}

export async function startProcess(name: string, program: URL, args: readonly string[]): Promise<Started> {
  const child = fork(fileURLToPath(program), args, { execArgv: ['--import', 'tsx', '--conditions=latchkey-source'] })
  const exited = once(child, 'exit')
  const ended = exited.then(([code]) => {
    throw new Error(`the ${name} did not start: it exited with code ${code}`)
  })
  const [message]: unknown[] = await Promise.race([once(child, 'message'), ended])
  return {
    message,
    pid: child.pid,
    exited,
    async stop() {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM')
      await exited
    },
  }
}
