import { expect, it } from 'vitest'
import { describeFinding } from './finding.ts'
import { makeTree } from './fixture.ts'
import { checkDocumentedOptions } from './options.ts'

const CHECKS = 'packages/latchkey/src/engine/option-checks.ts'

async function found(files: Record<string, string>): Promise<string[]> {
  return (await checkDocumentedOptions({ root: makeTree(files), update: false })).map(describeFinding)
}

it('names an option that no guide shows as code', async () => {
  const guide = 'Set `retentionMs` to what you like; onFailure is a word of the text.\n```ts\nf({ leaseMs: 1 })\n```\n'
  const source = 'const a: ChecksOf<A> = {\n  retentionMs: ms,\n  leaseMs: ms,\n  onFailure: text,\n}\n'
  expect(await found({ 'docs/guides/one.md': guide, [CHECKS]: source })).toEqual([
    expect.stringContaining(`${CHECKS}:4  the option onFailure is in no guide`),
  ])
})

it('reads nested options, and no members of a check, no other objects and no tests', async () => {
  const checks = `
    const a: ChecksOf<A> = { nested: nested({ inner: text }), path: { ...text, fits: isText } }
    const b: ChecksFor<'b'> = { ...a, other: text }
    const c: C = { unrelated: 1 }`
  const files = { [CHECKS]: checks, [CHECKS.replace('.ts', '.test.ts')]: 'const a: ChecksOf<A> = { tested: text }' }
  const names = (await found(files)).map(line => /the option (\w+)/.exec(line)?.[1])
  expect(names).toEqual(['nested', 'inner', 'path', 'other'])
})
