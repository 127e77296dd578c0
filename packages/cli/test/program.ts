/** The program as users run it: one file, in a process of its own, in an empty folder that has the drivers. */
import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll } from 'vitest'
import { bundleProgram } from '../bundle.ts'

export interface Ran {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>
  readonly input?: string
  /** Given to Node before the program. */
  readonly node?: readonly string[]
  /** Sees what the program has written so far, and may signal it. */
  readonly onOutput?: (written: Ran, kill: (signal: NodeJS.Signals) => void) => void
  readonly cwd?: string
  /** A call that takes longer hangs. Default 50 s. */
  readonly msMax?: number
}

export interface Program {
  /** An empty folder with a package.json. Also found: the drivers of this repository. */
  readonly folder: string
  run(args: readonly string[], options?: RunOptions): Promise<Ran>
  /** The output of a call with --json that must end with 0. */
  json<T>(args: readonly string[], options?: RunOptions): Promise<T>
  write(file: string, text: string): void
  /** The program's file. */
  readonly file: string
}

const root = fileURLToPath(new URL('../../..', import.meta.url))
const runMsDefault = 50_000

/** Call it in a suite. The program is there inside hooks and tests. */
export function useProgram(): Program {
  const folder = mkdtempSync(join(tmpdir(), 'latchkey-cli-'))
  const file = join(folder, 'program', 'bin.mjs')
  beforeAll(async () => {
    mkdirSync(join(folder, 'program'))
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
    await bundleProgram(file)
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  const run: Program['run'] = (args, options = {}) => start(folder, file, args, options)
  return {
    folder,
    file,
    run,
    async json<T>(args: readonly string[], options?: RunOptions) {
      const { code, stdout, stderr } = await run([...args, '--json'], options)
      if (code !== 0) throw new Error(`latchkey ${args.join(' ')} ended with ${code}: ${stderr}`)
      // The test says what it expects.
      return JSON.parse(stdout) as T
    },
    write: (name, text) => writeFileSync(join(folder, name), text),
  }
}

function start(folder: string, file: string, args: readonly string[], options: RunOptions): Promise<Ran> {
  const { env = {}, input, node = [], onOutput, cwd = folder, msMax = runMsDefault } = options
  // Nothing of the machine that runs the test: no settings, no colours.
  const { PATH = '' } = process.env
  const child = spawn(process.execPath, [...node, file, ...args], {
    cwd,
    env: { PATH, HOME: folder, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  const written = { code: null as number | null, stdout: '', stderr: '' }
  const limit = setTimeout(() => child.kill('SIGKILL'), msMax)
  const hear = (name: 'stdout' | 'stderr') => (chunk: Buffer) => {
    written[name] += chunk.toString()
    onOutput?.(written, signal => child.kill(signal))
  }
  child.stdout.on('data', hear('stdout'))
  child.stderr.on('data', hear('stderr'))
  child.stdin.on('error', () => {})
  child.stdin.end(input ?? '')
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', code => {
      clearTimeout(limit)
      resolve({ ...written, code })
    })
  })
}
