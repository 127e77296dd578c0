import { describe, expect, it } from 'vitest'
import { checkArchitecture } from './architecture.ts'
import { describeFinding } from './finding.ts'
import { libraryManifest, makeTree } from './fixture.ts'

const SRC = 'packages/latchkey/src'

async function found(files: Record<string, string>): Promise<string[]> {
  const sources = Object.entries(files).map(([file, text]) => [file.replace(/^src/, SRC), text])
  const manifest = { 'packages/latchkey/package.json': libraryManifest(), 'examples/shop/package.json': {} }
  const root = makeTree({ ...manifest, ...Object.fromEntries(sources) })
  return (await checkArchitecture({ root, update: false })).map(describeFinding)
}

const CLEAN = {
  'src/ports/store.ts': 'export type Store = string',
  'src/wire/key.ts': "import { parseItem } from 'structured-headers'\nexport const key = parseItem",
  'src/engine/decide.ts': "import type { Store } from '../ports/store.ts'\nexport type Decide = Store",
  'src/stores/shared/schema.ts': "import type { Store } from '../../ports/store.ts'\nexport type Schema = Store",
  'src/stores/postgres/index.ts':
    "import { createHash } from 'node:crypto'\nexport * from '../shared/schema.ts'\nexport { createHash }",
  'src/stores/sqlite/index.ts': "export * from '../../ports/store.ts'",
  'src/http/key-check.ts': "export * from '../wire/key.ts'",
  'src/http/exchange/exchange.ts': "export * from '../../engine/decide.ts'",
  'src/http/hono/index.ts': "export * from '../exchange/exchange.ts'\nexport { key } from '../key-check.ts'",
  'src/http/express/capture.ts': 'export const capture = 1',
  'src/http/nest/index.ts': "export * from '../express/capture.ts'",
  'src/index.ts': "export * from './engine/decide.ts'",
  'src/engine/decide.test.ts': "import '../stores/sqlite/index.ts'\nimport 'vitest'",
  'examples/shop/src/main.ts': "import 'latchkey'\nimport './shop.ts'",
}

describe('architecture', () => {
  it('accepts a tree that keeps to the table', async () => {
    expect(await found(CLEAN)).toEqual([])
  })

  it.each([
    [
      'an engine that imports a store',
      'src/engine/bad.ts',
      "\nimport '../stores/postgres/index.ts'",
      'engine imports stores',
    ],
    [
      'a type taken from a store',
      'src/engine/bad.ts',
      "\nimport type { A } from '../stores/postgres/index.ts'",
      'engine imports stores',
    ],
    [
      'a dynamic import of a store',
      'src/engine/bad.ts',
      "\nawait import('../stores/postgres/index.ts')",
      'engine imports stores',
    ],
    [
      'a port that imports the engine',
      'src/ports/bad.ts',
      "\nimport '../engine/decide.ts'",
      'may import nothing of ours',
    ],
    [
      'a store that imports its sibling',
      'src/stores/sqlite/bad.ts',
      "\nimport '../postgres/index.ts'",
      'sibling stores/postgres',
    ],
    [
      'what stores share that imports one of them',
      'src/stores/shared/bad.ts',
      "\nimport '../postgres/index.ts'",
      'stores/shared imports stores',
    ],
    [
      'an adapter that imports its sibling',
      'src/http/express/bad.ts',
      "\nimport '../hono/index.ts'",
      'sibling http/hono',
    ],
    ['a Nest adapter that imports Hono', 'src/http/nest/bad.ts', "\nimport '../hono/index.ts'", 'sibling http/hono'],
    [
      'a shared file that imports an adapter',
      'src/http/exchange/bad.ts',
      "\nimport '../hono/index.ts'",
      'shared part of http',
    ],
    ['a driver', 'src/stores/postgres/bad.ts', "\nimport pg from 'pg'", 'type it by shape in driver.ts'],
    ['a dependency in the wrong folder', 'src/engine/bad.ts', "\nimport 'structured-headers'", 'which is for wire'],
    ['a built-in without its prefix', 'src/engine/bad.ts', "\nimport 'crypto'", 'write "node:crypto"'],
    ['the package by its own name', 'src/engine/bad.ts', "\nimport 'latchkey'", 'use the relative path'],
    ['an import that ends in .js', 'src/engine/bad.ts', "\nimport './decide.js'", 'ending in .ts'],
    ['an import of nothing', 'src/engine/bad.ts', "\nimport './nothing.ts'", 'does not exist'],
    ['an import of a test', 'src/engine/bad.ts', "\nimport './decide.test.ts'", 'imports the test'],
    [
      'an example that reaches into the library',
      'examples/shop/bad.ts',
      "\nimport '../../packages/latchkey/src/index.ts'",
      'public subpath',
    ],
  ])('refuses %s, naming file, line and cure', async (_, file, text, message) => {
    const findings = await found({ ...CLEAN, [file]: text })
    expect(findings).toHaveLength(1)
    expect(findings[0]).toContain(`${file.replace(/^src/, SRC)}:2 `)
    expect(findings[0]).toContain(message)
  })

  it('asks for a row for a folder that has none', async () => {
    expect(await found({ ...CLEAN, 'src/magic/spell.ts': '' })).toEqual([expect.stringContaining('"magic" has no row')])
  })
})
