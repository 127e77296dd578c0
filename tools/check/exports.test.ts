import { describe, expect, it } from 'vitest'
import { checkExports } from './exports.ts'
import { describeFinding } from './finding.ts'
import { libraryManifest, makeTree } from './fixture.ts'

const CLEAN = {
  'packages/latchkey/package.json': libraryManifest('.', 'stores/postgres'),
  'packages/latchkey/src/index.ts': '',
  'packages/latchkey/src/stores/postgres/index.ts': '',
  'README.md': "```ts\nimport { createLatchkey } from 'latchkey'\n```\n",
  'docs/guides/stores.md': 'Use `latchkey/stores/postgres`.\n',
  'examples/shop/package.json': {},
  'examples/shop/src/main.ts': "import { postgresStore } from 'latchkey/stores/postgres'",
}

async function found(files: Record<string, string | object>): Promise<string[]> {
  const root = makeTree({ ...CLEAN, ...files })
  return (await checkExports({ root, update: false })).map(describeFinding)
}

describe('exports', () => {
  it('accepts subpaths that exist, are documented and are imported by their name', async () => {
    expect(await found({})).toEqual([])
  })

  it('reports an entry without its source file', async () => {
    const manifest = libraryManifest('.', 'stores/postgres', 'http/hono')
    const findings = await found({ 'packages/latchkey/package.json': manifest, 'docs/hono.md': '`latchkey/http/hono`' })
    expect(findings).toEqual([
      expect.stringContaining(
        'exports["./http/hono"] names packages/latchkey/src/http/hono/index.ts, which does not exist',
      ),
    ])
  })

  it('reports an entry whose built files are not where the build puts them', async () => {
    const wrong = {
      name: 'latchkey',
      exports: { '.': { 'latchkey-source': './src/index.ts', default: './dist/main.js', types: './dist/index.d.ts' } },
    }
    const findings = await found({ 'packages/latchkey/package.json': wrong, 'examples/shop/src/main.ts': '' })
    expect(findings).toEqual([expect.stringContaining('"types":"./dist/index.d.ts","default":"./dist/index.js"')])
  })

  it('reports an import of a subpath that does not exist, in documents and in examples', async () => {
    expect(await found({ 'docs/a.md': "\n```ts\nimport { x } from 'latchkey/stores/oracle'\n```" })).toEqual([
      expect.stringContaining('docs/a.md:3  imports "latchkey/stores/oracle", which is not a subpath'),
    ])
    expect(await found({ 'examples/shop/src/a.ts': "\nimport 'latchkey/src/index.ts'" })).toEqual([
      expect.stringContaining('examples/shop/src/a.ts:2  imports "latchkey/src/index.ts", which is not a subpath'),
    ])
  })

  it('reports a subpath that no document names; a longer one does not count', async () => {
    expect(await found({ 'docs/guides/stores.md': 'Use `latchkey/stores/postgres-http`.' })).toEqual([
      expect.stringContaining('the subpath "latchkey/stores/postgres" is not mentioned in README.md or docs/'),
    ])
  })
})
