/** The program on a terminal: `script` of util-linux gives it one. */
import { spawn } from 'node:child_process'
import type { Program } from './program.ts'

export interface OnTerminal {
  readonly code: number | null
  readonly screen: string
}

/** Types `answer` when the screen shows `question`. */
export function onTerminal(
  program: Program,
  args: readonly string[],
  {
    env,
    question,
    answer,
    before,
  }: { env: Record<string, string>; question: RegExp; answer: string; before?: () => Promise<unknown> },
): Promise<OnTerminal> {
  const command = [process.execPath, program.file, ...args].map(part => `'${part.replaceAll("'", `'\\''`)}'`).join(' ')
  const { PATH = '' } = process.env
  const child = spawn('script', ['-qefc', command, '/dev/null'], {
    cwd: program.folder,
    env: { PATH, HOME: program.folder, TERM: 'dumb', ...env },
  })
  let screen = ''
  let typed = false
  const limit = setTimeout(() => child.kill('SIGKILL'), 50_000)
  child.stdout.on('data', (chunk: Buffer) => {
    screen += chunk.toString()
    if (typed || !question.test(screen)) return
    typed = true
    void (before?.() ?? Promise.resolve()).then(() => child.stdin.write(answer))
  })
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', code => {
      clearTimeout(limit)
      resolve({ code, screen })
    })
  })
}
