/** A known bug, as data: what to change in the shipped source, and which tests must notice. */

export interface Patch {
  /** From the root of the repository. */
  readonly file: string
  /** Exact text, which occurs `times` times. */
  readonly find: string
  readonly replace: string
  /** Default: 1. */
  readonly times?: number
}

export interface NamedTest {
  readonly path: string
  /** Part of the test's full name. */
  readonly test: string
}

export interface Mutant {
  readonly name: string
  readonly patches: readonly Patch[]
  /** Every one of them must fail: a test in this list that notices nothing would give false comfort. */
  readonly caughtBy: readonly NamedTest[]
}

/** Seeds for the simulation: enough for every mutant that names it, and they take seconds without a bug. */
export const simulationSeeds = 2_000

export const simulation: NamedTest = {
  path: 'packages/latchkey/test/simulation/simulation.system.test.ts',
  test: 'many seeds keep every rule',
}

/** The playground's story, for bugs that show as an extra charge or a wrong answer to a client. */
export const story = (store: 'SQLite' | 'PostgreSQL'): NamedTest => ({
  path: 'examples/payments/test/story.system.test.ts',
  test: `ends every scene with the charges that were intended, on ${store}`,
})

/** The text with the bug in it. */
export function patched(mutant: string, text: string, { file, find, replace, times = 1 }: Patch): string {
  const found = text.split(find).length - 1
  if (found !== times) {
    throw new Error(
      `the mutant "${mutant}" is stale: its text occurs ${found} times in ${file}, not ${times}. ` +
        `Find the lines that now do what this text did, and copy them into "find":\n${find}`,
    )
  }
  return text.replaceAll(find, () => replace)
}
