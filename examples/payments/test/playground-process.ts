/** The playground as a person starts it: `npm start`, its printed lines, and Ctrl-C. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

export interface Playground {
  readonly printed: string
  readonly url: string
  readonly providerPid: number
  /** Runs one printed line in a shell. */
  paste(line: string): Promise<string>
  /** Every printed command, in order. */
  readonly commands: readonly string[]
  /** The n-th printed line that contains the text. */
  line(text: string, n?: number): string
  /** Sends a signal to the whole group, as a terminal does on Ctrl-C. */
  interrupt(signal?: NodeJS.Signals): void
  /** kill -9 of the API alone: no shutdown code runs. Returns when it is gone. */
  kill(): Promise<void>
  readonly exited: Promise<number | null>
  /** Ctrl-C, once. */
  stop(): Promise<number | null>
}

const root = fileURLToPath(new URL('../../..', import.meta.url))
const startLimitMs = 40_000

export async function startPlayground(...flags: string[]): Promise<Playground> {
  const child = launch(flags)
  const printed = await outputUntil(child, 'Ctrl-C stops everything.')
  const commands = printed
    .split('\n')
    .map(text => text.trim())
    .filter(line => line.startsWith('curl '))
  const exited = once(child, 'exit').then(([code]: unknown[]) => (typeof code === 'number' ? code : null))
  const interrupt = (signal: NodeJS.Signals = 'SIGINT') => void process.kill(-(child.pid ?? 0), signal)
  return {
    printed,
    commands,
    url: /http:\/\/127\.0\.0\.1:\d+/.exec(printed)?.[0] ?? '',
    providerPid: Number(/pid (\d+)/.exec(printed)?.[1]),
    paste: line => output('bash', ['-c', line]),
    line(text, n = 0) {
      const found = commands.filter(line => line.includes(text))[n]
      if (found === undefined) throw new Error(`no printed line contains ${text}`)
      return found
    },
    interrupt,
    async kill() {
      child.kill('SIGKILL')
      await exited
    },
    exited,
    stop() {
      interrupt()
      return exited
    },
  }
}

/** For starts that are refused: the exit code and what was said. */
export async function failToStart(...flags: string[]): Promise<{ code: unknown; said: string }> {
  const child = launch(flags)
  let said = ''
  child.stderr?.on('data', chunk => (said += String(chunk)))
  const [code]: unknown[] = await once(child, 'close')
  return { code, said }
}

const running = new Set<ChildProcess>()

/** Whatever a failed test has left: the whole group, so that no provider stays behind. */
export function killTheRest(): void {
  for (const { pid } of running) if (pid !== undefined) process.kill(-pid, 'SIGKILL')
}

function launch(flags: readonly string[]): ChildProcess {
  const args = ['--import', 'tsx', '--conditions=latchkey-source', 'examples/payments/src/main.ts', ...flags]
  const child = spawn(process.execPath, args, { cwd: root, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  running.add(child)
  child.once('exit', () => running.delete(child))
  return child
}

function outputUntil(child: ChildProcess, end: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    const limit = setTimeout(() => reject(new Error(`the playground did not start: ${text}`)), startLimitMs)
    child.stderr?.on('data', chunk => (text += String(chunk)))
    child.stdout?.on('data', chunk => {
      text += String(chunk)
      if (!text.includes(end)) return
      clearTimeout(limit)
      resolve(text)
    })
    child.once('exit', code => reject(new Error(`the playground ended with ${code}: ${text}`)))
  })
}

async function output(command: string, args: readonly string[]): Promise<string> {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  let text = ''
  child.stdout.on('data', chunk => (text += String(chunk)))
  await once(child, 'close')
  return text
}
