/** One mutant in one copy: seeds the bug, runs the tests named for it, and removes the bug. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Mutant, patched } from './mutant.ts'
import { runTests } from './run-tests.ts'
import { describeVerdict, verdictOn } from './vitest-report.ts'

export interface Trial {
  readonly mutant: Mutant
  readonly seconds: number
  /** Why it is not caught; undefined: every named test noticed. */
  readonly survived: string | undefined
}

/** For one named test on a busy machine; the slowest takes half a minute on two idle cores. */
const testLimitMs = 240_000

export async function tryMutant(copy: string, mutant: Mutant): Promise<Trial> {
  const startedMs = performance.now()
  const before = new Map(mutant.patches.map(({ file }) => [file, readFileSync(join(copy, file), 'utf8')]))
  try {
    for (const [file, text] of mutated(mutant, before)) writeFileSync(join(copy, file), text)
    const survived = await findSurvival(copy, mutant)
    return { mutant, survived, seconds: (performance.now() - startedMs) / 1_000 }
  } finally {
    for (const [file, text] of before) writeFileSync(join(copy, file), text)
  }
}

/** The files of a mutant with its bug. */
export function mutated({ name, patches }: Mutant, sources: ReadonlyMap<string, string>): Map<string, string> {
  const texts = new Map(sources)
  for (const patch of patches) texts.set(patch.file, patched(name, texts.get(patch.file) ?? '', patch))
  return texts
}

/** One run per test: a bug that prevents one file from loading must not be hidden by another that fails. */
async function findSurvival(copy: string, { caughtBy }: Mutant): Promise<string | undefined> {
  for (const named of caughtBy) {
    const ran = await runTests(copy, [named], testLimitMs)
    if (ran.kind === 'cut-short') return `${named.test} (${named.path}): ${ran.why}`
    const verdict = verdictOn(named, ran.report)
    if (verdict.kind !== 'failed') return describeVerdict(verdict, named)
  }
  return undefined
}
