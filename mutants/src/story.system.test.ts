import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { endTheRest, root, runStory } from '../../examples/payments/test/story-process.ts'
import { mutants } from './all.ts'
import { copyTree } from './private-copy.ts'
import { mutated } from './try-mutant.ts'

const directory = mkdtempSync(join(tmpdir(), 'latchkey-broken-story-'))
/** Longer than the story allows itself. */
const limitMs = 200_000

afterAll(() => {
  endTheRest()
  rmSync(directory, { recursive: true, force: true, maxRetries: 5 })
})

it(
  'the story ends with 1, and says which charges, when an intent is committed after its call',
  async () => {
    const copy = join(directory, 'copy')
    copyTree(root, copy)
    const mutant = mutants.find(({ name }) => name === 'engine: intent only after the call')
    if (mutant === undefined) throw new Error('there is no such mutant')
    const sources = new Map(mutant.patches.map(({ file }) => [file, readFileSync(join(root, file), 'utf8')]))
    for (const [file, text] of mutated(mutant, sources)) writeFileSync(join(copy, file), text)
    const { code, said, leftBehind } = await runStory(copy, '--quiet')
    expect(code, said).toBe(1)
    expect(said).toMatch(/^FAILED 3\. Crash after charge: .*\/payouts of \d+ for acme: 2 charges instead of 1/m)
    expect(leftBehind).toBe(0)
  },
  limitMs,
)
