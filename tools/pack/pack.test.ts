import { describe, expect, it } from 'vitest'
import { makeTree } from '../check/fixture.ts'
import { pruneDeclarations } from './declarations.ts'
import { indentWithTabs } from './indentation.ts'
import { packedManifest } from './manifest.ts'
import { reachedModules } from './modules.ts'
import { readmeForPackage } from './readme.ts'

const exports = {
  '.': { 'latchkey-source': './src/index.ts', types: './dist/index.d.ts', default: './dist/index.js' },
  './package.json': './package.json',
}

describe('the packed manifest', () => {
  it('has no source condition, and nothing that is for the workspace', () => {
    const manifest = {
      name: 'a',
      version: '1.0.0',
      private: true,
      scripts: {},
      devDependencies: {},
      exports,
      license: 'MIT',
    }
    expect(packedManifest(manifest)).toEqual({
      name: 'a',
      version: '1.0.0',
      license: 'MIT',
      exports: { '.': { types: './dist/index.d.ts', default: './dist/index.js' }, './package.json': './package.json' },
    })
  })
})

describe('the packed code', () => {
  const lines = [
    'export function statement(name) {',
    "    const ä = '–'",
    '    if (name) {',
    '        return `select',
    '            ${name === ä',
    '                ? 1',
    '                : `nested',
    '                    text`}',
    '        from there`',
    '    }',
    '    return undefined',
    '}',
  ]

  it('is indented by tabs, and has every text as it was', () => {
    expect(indentWithTabs('a.js', lines.join('\n')).split('\n')).toEqual([
      'export function statement(name) {',
      "\tconst ä = '–'",
      '\tif (name) {',
      '\t\treturn `select',
      '            ${name === ä',
      '\t\t\t\t? 1',
      '\t\t\t\t: `nested',
      '                    text`}',
      '        from there`',
      '\t}',
      '\treturn undefined',
      '}',
    ])
  })

  it('keeps the comments of declarations in line', () => {
    const declared = 'export interface A {\n    /**\n     * What it is.\n     */\n    readonly a: string;\n}\n'
    expect(indentWithTabs('a.d.ts', declared)).toBe(
      'export interface A {\n\t/**\n\t * What it is.\n\t */\n\treadonly a: string;\n}\n',
    )
  })
})

describe('the packed declarations', () => {
  const prune = (files: Readonly<Record<string, string>>) =>
    Object.fromEntries(pruneDeclarations(new Map(Object.entries(files)), ['index.d.ts']))

  it('are what the subpath exports, and what that mentions', () => {
    const pruned = prune({
      'index.d.ts':
        "import { type Inner, Unused } from './a.ts';\nexport { open as start } from './a.ts';\nexport interface Own {\n    readonly inner: Inner;\n}\n",
      'a.d.ts':
        "import type { Deep } from './b.ts';\nimport type { Other } from './c.ts';\n/** Opens it. */\nexport declare function open(): void;\n/** Inside. */\nexport interface Inner extends Deep {\n}\nexport declare class Unused {\n    other: Other;\n}\n",
      'b.d.ts': 'interface Base {\n}\nexport interface Deep extends Base {\n}\nexport type Not = string;\n',
      'c.d.ts': 'export interface Other {\n}\n',
    })
    expect(pruned).toEqual({
      'index.d.ts':
        "import { type Inner } from './a.ts';\nexport { open as start } from './a.ts';\nexport interface Own {\n    readonly inner: Inner;\n}\n",
      'a.d.ts':
        "import type { Deep } from './b.ts';\n/** Opens it. */\nexport declare function open(): void;\n/** Inside. */\nexport interface Inner extends Deep {\n}\n",
      'b.d.ts': 'interface Base {\n}\nexport interface Deep extends Base {\n}\n',
    })
  })

  it('follow stars, namespaces and types that are imported in place', () => {
    const pruned = prune({
      'index.d.ts':
        "export * from './a.ts';\nimport * as all from './b.ts';\nexport declare const late: import('./c.ts').Late;\nexport type All = typeof all;\n",
      'a.d.ts': 'export declare const a = 1, b: A;\ntype A = string;\ntype Not = string;\n',
      'b.d.ts': 'export declare const c = 1;\ndeclare const not = 2;\nexport {};\n',
      'c.d.ts': 'export interface Late {\n}\n',
    })
    expect(pruned['a.d.ts']).toBe('export declare const a = 1, b: A;\ntype A = string;\n')
    expect(pruned['b.d.ts']).toBe('export declare const c = 1;\nexport {};\n')
    expect(pruned['c.d.ts']).toBe('export interface Late {\n}\n')
  })

  it('keep what is declared for other modules', () => {
    const augmented =
      "declare module 'fastify' {\n    interface Request {\n        own: Own;\n    }\n}\ninterface Own {\n}\nexport {};\n"
    expect(prune({ 'index.d.ts': augmented })).toEqual({ 'index.d.ts': augmented })
  })
})

describe('the packed modules', () => {
  const manifest = { name: 'a', version: '1.0.0', exports }

  it('are those that a subpath reaches, code and declarations apart', () => {
    const root = makeTree({
      'dist/index.js': "import { a } from './a.js'\nconst b = await import('./b.js')\n",
      'dist/index.d.ts': "export type { T } from './types.ts'\nexport declare const t: import('./late.ts').Late\n",
      'dist/a.js': '',
      'dist/a.d.ts': '',
      'dist/b.js': '',
      'dist/types.d.ts': '',
      'dist/types.js': '',
      'dist/late.d.ts': '',
    })
    expect(reachedModules(root, manifest)).toEqual([
      'dist/a.js',
      'dist/b.js',
      'dist/index.d.ts',
      'dist/index.js',
      'dist/late.d.ts',
      'dist/types.d.ts',
    ])
  })

  it('must all be there', () => {
    expect(() => reachedModules(makeTree({ 'dist/index.js': '' }), manifest)).toThrow(
      /has no dist\/index\.d\.ts: build it/,
    )
  })
})

describe('the packed README', () => {
  it('has no link into the repository, and keeps links to elsewhere', () => {
    const text = '[A](docs/guides/a.md#x), [safe](SAFETY.md), [draft](https://example.org/d)\n```ts\nlist[0](a)\n```'
    expect(readmeForPackage(text)).toBe('A, safe, [draft](https://example.org/d)\n```ts\nlist[0](a)\n```')
  })
})
