import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { checkDocs, extractBlocks } from './docs.ts'
import { readText } from './files.ts'
import { describeFinding } from './finding.ts'
import { libraryManifest, makeTree } from './fixture.ts'

const CLEAN = {
  'tsconfig.base.json': {
    compilerOptions: {
      target: 'es2023',
      module: 'nodenext',
      strict: true,
      allowImportingTsExtensions: true,
      types: [],
    },
  },
  'packages/latchkey/package.json': { ...libraryManifest('.'), type: 'module' },
  'packages/latchkey/src/index.ts': 'export const leaseMs: number = 30_000\n',
}

async function found(files: Record<string, string>): Promise<string[]> {
  const root = makeTree({ ...CLEAN, ...files, 'node_modules/.keep': '' })
  symlinkSync(join(root, 'packages/latchkey'), join(root, 'node_modules/latchkey'))
  return (await checkDocs({ root, update: false })).map(describeFinding)
}

const block = (code: string, info = ''): string => `\`\`\`ts${info}\n${code}\n\`\`\`\n`

describe('docs', () => {
  it('accepts blocks that compile, each a module of its own', async () => {
    const readme = `# Shop\n\n${block("import { leaseMs } from 'latchkey'\nconst a: number = leaseMs")}\n${block('const a = await Promise.resolve(1)')}`
    expect(await found({ 'README.md': readme })).toEqual([])
  })

  it('reports an error at the line of the document', async () => {
    expect(
      await found({
        'README.md': `# Shop\n\n${block("import { leaseMs } from 'latchkey'\n\nconst a: string = leaseMs")}`,
      }),
    ).toEqual([expect.stringMatching(/^README\.md:6 {2}TS2322: /)])
  })

  it('reports an error in an indented block and in a doc comment', async () => {
    const comment = '/**\n * How long.\n *\n * ```ts\n * const a: string = 1\n * ```\n */\nexport const b: number = 1\n'
    const findings = await found({
      'docs/a.md': '- like so:\n\n  ```typescript\n  const a: string = 1\n  ```\n',
      'packages/latchkey/src/b.ts': comment,
    })
    expect(findings.sort()).toEqual([
      expect.stringMatching(/^docs\/a\.md:4 {2}TS2322/),
      expect.stringMatching(/^packages\/latchkey\/src\/b\.ts:5 {2}TS2322/),
    ])
  })

  it('puts a context before a block, and reports errors of each at its own place', async () => {
    const findings = await found({
      'docs/preludes/shop.ts': 'declare const price: number\nconst wrong: string = 1\n',
      'docs/a.md': `<!-- context: shop -->\n\n${block('const a: number = price\nconst b: string = price')}`,
    })
    expect(findings.sort()).toEqual([
      expect.stringMatching(/^docs\/a\.md:5 /),
      expect.stringMatching(/^docs\/preludes\/shop\.ts:2 /),
    ])
  })

  it('lets a block import a named one and continue the previous one', async () => {
    const text = [
      block('export const price = 1', ' file=shop.ts'),
      block("import { price } from './shop.ts'\nconst two = price + 1"),
    ]
    expect(
      await found({ 'docs/a.md': `${text.join('\n')}\n<!-- continues -->\n${block('const three: number = two + 1')}` }),
    ).toEqual([])
  })

  it('reports a broken block once, however many continue it', async () => {
    const text = [block('const a: string = 1'), '<!-- continues -->', block('const b = a')].join('\n')
    expect(await found({ 'docs/a.md': text })).toEqual([expect.stringMatching(/^docs\/a\.md:2 /)])
  })

  it('refuses directives that cannot be followed', () => {
    const text = `<!-- context: none -->\n${block('1')}\n<!-- wrong -->\n${block('2')}\n<!-- wrong -->\n${block('3 // Wrong: runs twice')}`
    const { findings } = extractBlocks(
      makeTree({ ...CLEAN, 'docs/a.md': text, 'docs/b.md': `<!-- continues -->\n${block('1')}` }),
    )
    expect(findings.map(describeFinding)).toEqual([
      expect.stringContaining('docs/a.md:3  needs the context "none": write docs/preludes/none.ts'),
      expect.stringContaining('docs/a.md:8  is marked wrong where readers do not see it'),
      expect.stringContaining('docs/b.md:3  continues a block, but the document has none before it'),
    ])
  })

  it('compiles a block that is marked wrong', async () => {
    expect(await found({ 'docs/a.md': `<!-- wrong -->\n${block('const a: string = 1 // wrong')}` })).toEqual([
      expect.stringContaining('TS2322'),
    ])
  })

  it('reports links and anchors that lead nowhere, and only those', async () => {
    const findings = await found({
      'README.md':
        '[a](docs/a.md) [b](docs/b.md) [c](docs/a.md#who-may-do-it) [d](docs/a.md#nobody) [e](#none) [f](https://example.org/x.md) `[g](g.md)`',
      'docs/a.md': '# Who *may* do it?\n\n```sh\n# [h](h.md)\n```\n[up](../README.md)\n',
    })
    expect(findings).toEqual([
      expect.stringContaining('README.md:1  links to docs/b.md, which does not exist'),
      expect.stringContaining('links to docs/a.md#nobody'),
      expect.stringContaining('links to #none'),
    ])
  })

  it('reports a guide that the README does not lead to', async () => {
    const guides = { 'docs/guides/a.md': '# A\n', 'docs/guides/b.md': '# B\n', 'docs/guides/c.md': '# C\n' }
    const readme = '[a](docs/guides/a.md) [c](docs/guides/c.md#c)'
    expect(await found({ ...guides, 'README.md': readme })).toEqual([
      expect.stringContaining('docs/guides/b.md  the README does not link to this guide'),
    ])
  })

  it('compares a block that shows a file of the repository, and writes it anew when asked to', async () => {
    const shows = (code: string) => `# Shop\n\n<!-- source: shop.ts -->\n${block(code)}\nThe end.\n`
    const shop = "import './no-module-of-the-document.ts'\nexport const tea = 1\n"
    expect(await found({ 'README.md': shows(shop.trimEnd()), 'shop.ts': shop })).toEqual([])
    const files = { 'README.md': shows('export const tea = 2'), 'shop.ts': shop }
    expect(await found(files)).toEqual([
      'README.md:5  differs from shop.ts: run `npm run check -- --only docs --update`',
    ])
    const root = makeTree({ ...CLEAN, ...files })
    expect(await checkDocs({ root, update: true })).toEqual([])
    expect(readText(root, 'README.md')).toBe(shows(shop.trimEnd()))
    const empty = makeTree({ ...CLEAN, ...files, 'README.md': shows('').replace('\n\n```', '\n```') })
    expect(await checkDocs({ root: empty, update: true })).toEqual([])
    expect(readText(empty, 'README.md')).toBe(shows(shop.trimEnd()))
  })

  it('reports a file that is shown and does not exist', async () => {
    expect(await found({ 'README.md': `<!-- source: shop.ts -->\n${block('export const tea = 1')}` })).toEqual([
      'README.md:3  shows shop.ts, which does not exist: correct the path',
    ])
  })
})
