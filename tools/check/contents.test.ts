import { describe, expect, it } from 'vitest'
import { contentFindings } from './contents.ts'
import { describeFinding } from './finding.ts'
import { makeTree } from './fixture.ts'

const CLEAN = {
  'package.json': { name: 'latchkey', exports: { '.': { types: './dist/index.d.ts', default: './dist/index.js' } } },
  LICENSE: 'Apache-2.0',
  'README.md': '# Latchkey\n\nRead [the draft](https://example.org/draft).\n',
  'dist/index.js': 'export {}\n',
  'dist/index.d.ts': 'export {}\n',
}

function found(files: Record<string, string | object>, bytesMax = 10_000): string[] {
  const extracted = makeTree({ ...CLEAN, ...files })
  return contentFindings({ folder: 'packages/latchkey', extracted }, bytesMax).map(describeFinding)
}

describe('contents', () => {
  it('accepts code, declarations, a manifest, a README and a licence', () => {
    expect(found({})).toEqual([])
  })

  it.each([
    'src/index.ts',
    'docs/guides/a.md',
    'dist/index.js.map',
    'dist/a.test.js',
    'dist/a.test.d.ts',
    'dist/a.ts',
    'dist/vectors/a.json',
  ])('reports %s', file => expect(found({ [file]: '' })).toEqual([expect.stringContaining(`contains ${file}`)]))

  it('reports a package without a README', () => {
    const extracted = makeTree({ 'package.json': {}, LICENSE: '' })
    expect(contentFindings({ folder: 'packages/latchkey', extracted }, 100).map(describeFinding)).toEqual([
      expect.stringContaining('has no README.md'),
    ])
  })

  it('reports what of the manifest only the workspace can follow', () => {
    const manifest = { exports: { '.': { 'latchkey-source': './src/index.ts' } }, scripts: {}, private: true }
    expect(found({ 'package.json': manifest })).toEqual([
      expect.stringContaining('says latchkey-source'),
      expect.stringContaining('says "private"'),
      expect.stringContaining('says "scripts"'),
    ])
  })

  it('reports a README with a link that leads into the repository', () => {
    expect(found({ 'README.md': '[a](docs/guides/a.md) [b](#b)' })).toEqual([
      expect.stringContaining('links to docs/guides/a.md'),
    ])
  })

  it('reports a package that has grown', () => {
    expect(found({}, 100)).toEqual([expect.stringMatching(/has \d+ bytes, more than 100/)])
  })
})
