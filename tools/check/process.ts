import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Finding } from './finding.ts'

export type Ran = { code: number; output: string }

/** Where the tools themselves are installed; a checked tree need not have a node_modules of its own. */
const HOME = fileURLToPath(new URL('../..', import.meta.url))

export const toolPath = (name: string): string => join(HOME, 'node_modules', '.bin', name)

/** Runs a program to its end; its standard output and error come back as one text. */
export function run(command: string, args: readonly string[], cwd: string): Promise<Ran> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, NO_COLOR: '1' },
    })
    const chunks: Buffer[] = []
    child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
    child.stderr.on('data', (chunk: Buffer) => chunks.push(chunk))
    child.on('error', reject)
    child.on('close', code => resolve({ code: code ?? 1, output: Buffer.concat(chunks).toString('utf8').trim() }))
  })
}

/** Findings of `tsc --pretty false`; whatever else it printed becomes one finding, so that a failure is never silent. */
export function compilerFindings({ code, output }: Ran, project: string): Finding[] {
  if (code === 0) return []
  const findings: Finding[] = []
  for (const row of output.split('\n')) {
    const match = /^(.+?)\((\d+),\d+\): error (TS\d+: .*)$/.exec(row)
    const last = findings.at(-1)
    if (match !== null) findings.push({ file: match[1] ?? '', line: Number(match[2]), message: match[3] ?? '' })
    else if (last !== undefined && /^\s/.test(row)) last.message += `\n${row}`
  }
  return findings.length > 0 ? findings : [{ file: project, message: `tsc ended with ${code}: ${output}` }]
}
