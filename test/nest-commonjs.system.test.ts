// A service of Nest 11 in CommonJS, as its owner would build, run and test it, with Latchkey from its tarball.
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { packAndExtract } from '../tools/check/packed.ts'
import { run } from '../tools/check/process.ts'
import { installPackages } from '../tools/pack/install.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const sources = ['nest-commonjs/src/main.ts', 'nest-commonjs/src/orders.ts', 'nest-commonjs/src/orders.spec.ts']
const settings = ['nest-commonjs/package.json', 'nest-commonjs/tsconfig.json', 'nest-commonjs/jest.config.js']
// Building the packages and the service takes seconds, and more than a minute beside other suites.
const timeoutMs = 180_000

describe('a CommonJS service of Nest 11', () => {
  const folder = mkdtempSync(join(tmpdir(), 'latchkey-nest-'))
  const app = join(folder, 'nest-commonjs')
  const node = (...args: string[]) => run(process.execPath, args, app)

  beforeAll(async () => {
    for (const file of [...sources, ...settings]) {
      mkdirSync(dirname(join(folder, file)), { recursive: true })
      cpSync(join(root, 'test', file), join(folder, file))
    }
    const packed = await packAndExtract(root, join(folder, 'packed'))
    installPackages(app, packed, [join(root, 'test/nest-commonjs/node_modules'), join(root, 'node_modules')])
  }, timeoutMs)

  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  it(
    'compiles, and requires Latchkey on plain Node: an order is created once',
    async () => {
      expect(await node('node_modules/typescript/bin/tsc', '-p', '.')).toEqual({ code: 0, output: '' })
      const { code, output } = await node('dist/main.js')
      const [first, retry, ...more] = output.split('\n').filter(line => line.startsWith('201 '))
      expect({ code, more, retry }, output).toEqual({ code: 0, more: [], retry: first?.replace(/first$/, 'replayed') })
      expect(first).toMatch(/"sku":"tea".* first$/)
    },
    timeoutMs,
  )

  it(
    'is tested by Jest with the configuration of the guide',
    async () => {
      const guide = readFileSync(join(root, 'docs/guides/http-adapters.md'), 'utf8')
      expect(guide).toContain(readFileSync(join(root, 'test/nest-commonjs/jest.config.js'), 'utf8'))
      const { code, output } = await node('node_modules/jest/bin/jest.js', '--no-cache', '--ci')
      expect(output).toMatch(/Tests: +1 passed, 1 total/)
      expect(code).toBe(0)
    },
    timeoutMs,
  )
})
