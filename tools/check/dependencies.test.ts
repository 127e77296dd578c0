import { expect, it } from 'vitest'
import { checkDependencies } from './dependencies.ts'
import { describeFinding } from './finding.ts'
import { makeTree } from './fixture.ts'

const entry = { version: '2.1.0', integrity: 'sha512-abc' }

async function found({
  version = '2.1.0',
  locked = {},
  decided = '| `parser` | small | hard to write |',
  others = {},
}) {
  const root = makeTree({
    'packages/latchkey/package.json': { name: 'latchkey', dependencies: { parser: version } },
    'docs/decisions/0003-dependencies.md': decided,
    'package-lock.json': {
      packages: {
        'packages/latchkey': {},
        'node_modules/latchkey': { link: true },
        'node_modules/parser': { ...entry, ...locked },
        ...others,
      },
    },
  })
  return (await checkDependencies({ root, update: false })).map(describeFinding)
}

const parser = 'packages/latchkey/package.json  the runtime dependency parser'

it('accepts a dependency that is argued for, at one version, with nothing behind it', async () => {
  const others = { 'node_modules/tool-darwin': { version: '1.0.0', optional: true, os: ['darwin'] } }
  expect(await found({ others })).toEqual([])
})

it.each([
  ['no reason for it', { decided: '' }, 'is not in docs/decisions/0003-dependencies.md'],
  ['a range', { version: '^2.1.0' }, 'has the range ^2.1.0'],
  ['another version in the lock file', { locked: { version: '2.1.1' } }, 'is 2.1.1 in package-lock.json'],
  ['a dependency of its own', { locked: { dependencies: { left: '1.0.0' } } }, 'brings left'],
  ['an install script', { locked: { hasInstallScript: true } }, 'runs a script when it is installed'],
])('refuses a dependency with %s', async (_, fault, message) => {
  expect(await found(fault)).toContainEqual(expect.stringContaining(`${parser} ${message}`))
})

it.each([
  ['no digest', {}],
  ['a weak digest', { integrity: 'sha1-abc' }],
])('refuses a locked package with %s', async (_, digest) => {
  const others = { 'node_modules/a/node_modules/tool': { version: '1.0.0', ...digest } }
  expect(await found({ others })).toEqual([
    'package-lock.json  node_modules/a/node_modules/tool has no sha512 digest: run `npm install` to write it',
  ])
})
