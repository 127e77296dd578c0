import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { processesInGroup, signal, until } from '../../test/servers/processes.ts'
import type { Message, RunReport } from './messages.ts'

// After its last test vitest closes its workers and stops the server; more than this is a hang.
const CLOSING_LIMIT_MS = 60_000

// Workers and the compiler's service process are told to end when vitest does, and take a moment.
const LEFTOVER_LIMIT_MS = 10_000

/**
 * Runs vitest in a process group of its own, so that a test that hangs in a loop, blocks its process or leaves children
 * can be ended with all that belongs to it, and what was found until then is reported all the same.
 */
export async function superviseVitest(args: string[], limitMs: number): Promise<RunReport> {
  const runner = fileURLToPath(new URL('run-vitest.ts', import.meta.url))
  const child = fork(runner, args, { detached: true, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const report: RunReport = { files: [], unhandledErrors: 0, exitCode: null }
  let ended = false
  const cut = (why: string) => {
    report.cutShort ??= why
    killGroup(child)
  }
  let limit = setTimeout(() => cut(`the time limit of ${limitMs / 60_000} minutes passed`), limitMs)
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(name, () => cut(`it got ${name}`))

  child.on('message', (message: Message) => {
    if (message.kind === 'file') {
      report.files.push(message.report)
      return
    }
    report.unhandledErrors = message.unhandledErrors
    ended = true
    clearTimeout(limit)
    limit = setTimeout(() => cut('vitest did not close after its last test'), CLOSING_LIMIT_MS)
  })

  const [exitCode, killedBy] = await once(child, 'close')
  clearTimeout(limit)
  if (!ended) report.cutShort ??= `vitest ended early (${killedBy ?? `exit code ${exitCode}`})`
  if (!(await until(() => processesInGroup(child.pid ?? 0).length === 0, LEFTOVER_LIMIT_MS))) {
    cut(`processes were left running: ${processesInGroup(child.pid ?? 0).join(', ')}`)
  }
  report.exitCode = exitCode
  return report
}

function killGroup(child: ChildProcess): void {
  if (child.pid !== undefined) signal(-child.pid, 'SIGKILL')
}
