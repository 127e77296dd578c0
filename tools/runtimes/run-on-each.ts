/** Runs one program on several versions of Node, one after the other, and prints how long each took and what it counted. */
import { spawn } from 'node:child_process'
import { delimiter } from 'node:path'

export interface Runtime {
  /** Without the `v`. */
  readonly version: string
  /** Where its `node` is. */
  readonly directory: string
}

export async function runOnEach(
  runtimes: readonly Runtime[],
  args: readonly string[],
  say: (line: string) => void,
): Promise<{ passed: number; failed: number }> {
  const lines: string[] = []
  let passed = 0
  for (const runtime of runtimes) {
    say(`\nNode ${runtime.version}: node ${args.join(' ')}`)
    const startedMs = performance.now()
    const { exitCode, lastLine } = await runOn(runtime, args)
    const seconds = ((performance.now() - startedMs) / 1000).toFixed(1).padStart(7)
    if (exitCode === 0) passed += 1
    const end = exitCode === 0 ? lastLine : `${lastLine}: FAILED, exit code ${exitCode}`
    lines.push(`Node ${runtime.version.padEnd(10)} ${seconds} s  ${end}`)
  }
  const failed = runtimes.length - passed
  say(`\n${lines.join('\n')}\n${passed} passed, ${failed} failed`)
  return { passed, failed }
}

interface Ended {
  /** Null if a signal ended it. */
  readonly exitCode: number | null
  readonly lastLine: string
}

function runOn({ directory }: Runtime, args: readonly string[]): Promise<Ended> {
  // Programs that look for `node` find this one, too.
  const env = { ...process.env, PATH: `${directory}${delimiter}${process.env.PATH ?? ''}` }
  return new Promise((resolve, reject) => {
    const child = spawn(`${directory}/node`, args, { env, stdio: ['ignore', 'pipe', 'inherit'] })
    let lastLines = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      process.stdout.write(text)
      lastLines = `${lastLines}${text}`.slice(-lastLinesMax)
    })
    child.on('error', reject)
    child.on('close', exitCode => resolve({ exitCode, lastLine: lastLines.trimEnd().split('\n').at(-1) ?? '' }))
  })
}

/** Characters: more than the last line of any test run. */
const lastLinesMax = 1_000
