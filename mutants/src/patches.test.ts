import { existsSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Loader, transformSync } from 'esbuild'
import { expect, it } from 'vitest'
import { mutants } from './all.ts'
import { patched } from './mutant.ts'
import { mutated } from './try-mutant.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

it.each(mutants)('applies to the source as it is, and leaves it in its language: $name', mutant => {
  const sources = new Map(mutant.patches.map(({ file }) => [file, readFileSync(join(root, file), 'utf8')]))
  for (const [file, text] of mutated(mutant, sources)) {
    expect(text).not.toBe(sources.get(file))
    expect(() => transformSync(text, { loader: loaderOf(file) })).not.toThrow()
  }
})

/** TypeScript, and of the console its page: TSX and CSS. */
function loaderOf(file: string): Loader {
  const loader = ({ '.ts': 'ts', '.tsx': 'tsx', '.css': 'css' } as const)[extname(file)]
  if (loader === undefined)
    throw new Error(`${file} is seeded with a bug, and no loader reads it: add its language here`)
  return loader
}

it.each(mutants)('is named for tests that exist: $name', ({ caughtBy }) => {
  expect(caughtBy.length).toBeGreaterThan(0)
  expect(caughtBy.filter(({ path }) => !existsSync(join(root, path)))).toEqual([])
})

it('has a name for each mutant', () => {
  expect(new Set(mutants.map(({ name }) => name)).size).toBe(mutants.length)
})

it('says of a stale patch which it is, where, and what to do', () => {
  const patch = { file: 'lease.ts', find: 'fence', replace: '' }
  expect(() => patched('no fence', 'fence and fence', patch)).toThrow(
    /"no fence" is stale: its text occurs 2 times in lease\.ts, not 1\. .* copy them into "find"/,
  )
  expect(patched('no fence', 'fence and fence', { ...patch, times: 2 })).toBe(' and ')
})
