import { describe, expect, it } from 'vitest'
import { describeFinding } from './finding.ts'
import { libraryManifest, makeTree } from './fixture.ts'
import { checkTidy } from './tidy.ts'

const SRC = 'packages/latchkey/src'
const RATCHET = 'tools/check/tidy/ratchet.json'
const CLEAN = {
  'package.json': { scripts: { check: 'tsx tools/check.ts' } },
  'package-lock.json': '{ "resolved": "packages/latchkey" }',
  'tools/check.ts': '',
  'packages/latchkey/package.json': libraryManifest('.'),
  [`${SRC}/index.ts`]: "export * from './ports/clock.ts'\nexport * from './lease.ts'",
  [`${SRC}/ports/clock.ts`]: 'export const now = Date.now',
  [`${SRC}/lease.ts`]: '// TODO(sql): Drop this with migration 4.\nexport const format = (ms: number) => new Date(ms)',
  [`${SRC}/lease.test.ts`]: "import './lease.ts'\nimport './child-starter.ts'\nit('tells the time', () => Date.now())",
  [`${SRC}/child-starter.ts`]: "new URL('./child.ts', import.meta.url)",
  [`${SRC}/child.ts`]: '',
  'test/servers/postgres.test.ts': "describe.skip('needs a server', () => {})",
}

async function found(files: Record<string, string | object>): Promise<string[]> {
  return (await checkTidy({ root: makeTree({ ...CLEAN, ...files }), update: false })).map(describeFinding)
}

const lines = (count: number): string => '1\n'.repeat(count)
const longFunction = (count: number): string => `export function long() {\n${lines(count - 2)}}\n`

describe('tidy', () => {
  it('accepts a tidy tree', async () => {
    expect(await found({})).toEqual([])
  })

  it.each([
    ['a file of 501 lines', `${SRC}/lease.ts`, lines(501), 'lease.ts:1  the file has 501 lines'],
    ['a function of 71 lines', `${SRC}/lease.ts`, longFunction(71), 'lease.ts:1  the function long has 71 lines'],
    [
      'an arrow function of 71 lines',
      `${SRC}/lease.ts`,
      `const f = () => {\n${lines(69)}}`,
      'the function f has 71 lines',
    ],
    ['Date.now()', `${SRC}/lease.ts`, '\nDate.now()', 'lease.ts:2  uses Date.now'],
    ['Date.now as a value', `${SRC}/lease.ts`, 'const now = Date.now', 'uses Date.now'],
    ['new Date()', `${SRC}/lease.ts`, 'new Date()', 'uses the current Date'],
    ['performance.now()', `${SRC}/lease.ts`, 'performance.now()', 'uses performance.now'],
    ['Math.random()', `${SRC}/lease.ts`, 'Math.random()', 'uses Math.random'],
    ['an imported randomUUID', `${SRC}/lease.ts`, "import { randomUUID } from 'node:crypto'", 'uses randomUUID'],
    [
      'an imported randomBytes',
      `${SRC}/lease.ts`,
      "import { randomBytes as r } from 'node:crypto'",
      'uses randomBytes',
    ],
    ['crypto.randomUUID()', `${SRC}/lease.ts`, 'globalThis.crypto.randomUUID()', 'uses globalThis.crypto.randomUUID'],
    [
      'it.only',
      `${SRC}/lease.test.ts`,
      "import './child-starter.ts'\nit.only('a', () => {})",
      'lease.test.ts:2  it.only hides',
    ],
    ['describe.only.each', `test/a.test.ts`, "describe.only.each([1])('a', () => {})", 'describe.only hides'],
    ['it.skip', 'test/a.test.ts', "it.skip('a', () => {})", 'test/a.test.ts:1  it.skip: make it pass'],
    ['describe.skip', 'test/a.test.ts', "describe.skip('a', () => {})", 'describe.skip: make it pass'],
    ['a bare TODO', `${SRC}/lease.ts`, '// TODO later', 'lease.ts:1  a TODO names its owner'],
    ['a FIXME', 'docs/a.md', '\nFIXME', 'docs/a.md:2  a FIXME is a known bug'],
    ['an XXX', 'docs/a.md', 'XXX', 'XXX says nothing'],
    ['a registry address', '.npmrc', 'registry=http://127.0.0.1/npm', '.npmrc:1  a registry address'],
    ['a folder outside', 'README.md', `see ${['..', 'shared'].join('/')}/X.md`, 'README.md:1  this folder is not part'],
    [
      'a lock file with addresses',
      'package-lock.json',
      '{\n  "resolved": "https://x/y.tgz" }',
      'package-lock.json:2  contains registry addresses',
    ],
    ['a dead file', `${SRC}/dead.ts`, '', 'src/dead.ts  nothing reaches this file'],
    ['a dead tool', 'tools/dead.ts', '', 'tools/dead.ts  nothing reaches this file'],
  ])('refuses %s', async (_, file, text, message) => {
    expect(await found({ [file]: text })).toEqual([expect.stringContaining(message)])
  })

  it.each(['utils.ts', 'helpers.ts', 'common.ts', 'types.ts'])('refuses a file called %s', async name => {
    const importer = { [`${SRC}/lease.ts`]: `import './${name}'` }
    expect(await found({ ...importer, [`${SRC}/${name}`]: '' })).toEqual([
      expect.stringContaining('named for its one idea'),
    ])
  })

  it('accepts a file of 500 lines, a function of 70, and a describe of any length', async () => {
    const test = `describe('a', () => {\n${lines(200)}})`
    expect(
      await found({ [`${SRC}/lease.ts`]: lines(500), 'tools/check.ts': longFunction(70), 'test/a.test.ts': test }),
    ).toEqual([])
  })

  it('accepts 16 source files in a folder with tests beside them, and refuses 17', async () => {
    const names = (count: number) => Array.from({ length: count }, (_, at) => `part-${at}.ts`)
    const folder = (count: number): Record<string, string> => ({
      [`${SRC}/index.ts`]: names(count)
        .map(name => `import './parts/${name}'`)
        .join('\n'),
      [`${SRC}/lease.ts`]: "import './ports/clock.ts'",
      ...Object.fromEntries(names(count).map(name => [`${SRC}/parts/${name}`, ''])),
      [`${SRC}/parts/part-0.test.ts`]: '',
    })
    expect(await found(folder(16))).toEqual([])
    expect(await found(folder(17))).toEqual([expect.stringContaining('src/parts  the folder has 17 source files')])
  })

  it('accepts a README of 110 lines, and refuses one more', async () => {
    expect(await found({ 'README.md': lines(110) })).toEqual([])
    expect(await found({ 'README.md': lines(111) })).toEqual([expect.stringContaining('README has 111 lines')])
  })

  it('tolerates what the ratchet lists, and lets it only fall', async () => {
    const file = { [`${SRC}/lease.ts`]: longFunction(80) }
    const listed = (allowed: number): Record<string, object> => ({ [RATCHET]: { [`${SRC}/lease.ts#long`]: allowed } })
    expect(await found({ ...file, ...listed(80) })).toEqual([])
    expect(await found({ ...file, ...listed(79) })).toEqual([expect.stringContaining('has 80 lines, more than 79')])
    expect(await found({ ...file, ...listed(81) })).toEqual([expect.stringContaining('shrank to 80 lines')])
    expect(await found(listed(80))).toEqual([expect.stringContaining('within the limit now')])
  })
})
