/** Runs programs one after the other, each to its end or its limit, and prints how long each took. */
import { spawn } from 'node:child_process'

export interface Part {
  readonly name: string
  readonly command: readonly [string, ...string[]]
  /** Far above what it takes: a part that hangs is killed, and counts as failed. */
  readonly minutesMax: number
}

export interface Proof {
  readonly passed: number
  readonly failed: number
}

export async function runParts(parts: readonly Part[], say: (line: string) => void): Promise<Proof> {
  const lines: string[] = []
  let passed = 0
  for (const part of parts) {
    say(`\n${part.name}: ${part.command.join(' ')}`)
    const startedMs = performance.now()
    const end = await endOf(part)
    const seconds = ((performance.now() - startedMs) / 1000).toFixed(1).padStart(7)
    if (end === 'exit code 0') passed += 1
    lines.push(`${part.name.padEnd(22)} ${seconds} s  ${end === 'exit code 0' ? 'ok' : `FAILED, ${end}`}`)
  }
  say(`\n${lines.join('\n')}\n${passed} passed, ${parts.length - passed} failed`)
  return { passed, failed: parts.length - passed }
}

function endOf({ command: [program, ...args], minutesMax }: Part): Promise<string> {
  return new Promise(resolve => {
    // A group of its own, so that what it started ends with it.
    const child = spawn(program, args, { stdio: 'inherit', detached: true })
    const endGroup = (signal: NodeJS.Signals) => {
      if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, signal)
    }
    const limit = setTimeout(() => endGroup('SIGKILL'), minutesMax * 60_000)
    const interrupted = () => {
      endGroup('SIGTERM')
      process.exit(1)
    }
    process.once('SIGINT', interrupted).once('SIGTERM', interrupted)
    const settle = (end: string) => {
      clearTimeout(limit)
      process.off('SIGINT', interrupted).off('SIGTERM', interrupted)
      resolve(end)
    }
    child.on('error', error => settle(error.message))
    child.on('exit', (code, signal) => settle(signal === null ? `exit code ${code}` : `ended by ${signal}`))
  })
}
