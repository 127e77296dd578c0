/** Runs named tests in a copy of the tree, within a time limit, and kills what is left of them. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { processesInGroup, signal } from '../../test/servers/processes.ts'
import { type NamedTest, simulationSeeds } from './mutant.ts'
import type { VitestReport } from './vitest-report.ts'

export type Ran =
  | { readonly kind: 'reported'; readonly report: VitestReport }
  /** No report: over the limit, or vitest itself failed. */
  | { readonly kind: 'cut-short'; readonly why: string }

const running = new Set<ChildProcess>()

/** Only process groups that this program started. */
export function endAll(): void {
  for (const { pid } of running) if (pid !== undefined) signal(-pid, 'SIGKILL')
}

export async function runTests(copy: string, tests: readonly NamedTest[], limitMs: number): Promise<Ran> {
  const [reportFile, logFile] = [join(copy, 'mutants-report.json'), join(copy, 'mutants-log.txt')]
  rmSync(reportFile, { force: true })
  const paths = [...new Set(tests.map(({ path }) => path))]
  const names = tests.map(({ test }) => test.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&')).join('|')
  const vitest = join(copy, 'node_modules/vitest/vitest.mjs')
  const log = openSync(logFile, 'w')
  const child = spawn(
    process.execPath,
    [vitest, 'run', ...paths, '-t', names, '--reporter=json', `--outputFile=${reportFile}`],
    {
      cwd: copy,
      // Its own process group: a mutant that hangs is killed with all its children.
      detached: true,
      stdio: ['ignore', log, log],
      env: { ...process.env, LATCHKEY_SEEDS: String(simulationSeeds), NO_COLOR: '1' },
    },
  )
  closeSync(log)
  running.add(child)
  let overdue = false
  const limit = setTimeout(() => {
    overdue = true
    signal(-(child.pid ?? 0), 'SIGKILL')
  }, limitMs)
  await once(child, 'close')
  clearTimeout(limit)
  if (child.pid !== undefined && processesInGroup(child.pid).length > 0) signal(-child.pid, 'SIGKILL')
  running.delete(child)
  if (overdue) return { kind: 'cut-short', why: `did not end within ${limitMs / 1_000} s` }
  try {
    // Vitest's own format; verdictOn reads the little of it that it knows.
    return { kind: 'reported', report: JSON.parse(readFileSync(reportFile, 'utf8')) as VitestReport }
  } catch {
    return { kind: 'cut-short', why: `vitest wrote no report:\n${readFileSync(logFile, 'utf8').slice(-2_000)}` }
  }
}
