import { describe, expect, it } from 'vitest'
import { areaOf, summarise } from './summary.ts'

const file = { file: 'packages/latchkey/src/engine/identity.test.ts', passed: 3, failed: [], skipped: [] }

describe('the summary', () => {
  it('fails a run that passed nothing and failed nothing', () => {
    const skipped = [{ name: 'all', tests: 2 }]
    const { lines, exitCode } = summarise({ files: [{ ...file, passed: 0, skipped }], unhandledErrors: 0, exitCode: 0 })
    expect({ last: lines.at(-1), exitCode }).toEqual({ last: '0 passed, 0 failed, 2 skipped', exitCode: 1 })
  })

  it('fails a run whose exit code nothing else explains', () => {
    const { lines, exitCode } = summarise({ files: [file], unhandledErrors: 0, exitCode: 7 })
    expect({ last: lines.at(-1), exitCode }).toEqual({ last: '3 passed, 1 failed', exitCode: 1 })
  })

  it('adds up the files of an area', () => {
    const store = { ...file, file: 'packages/latchkey/src/stores/postgres/claim.pg.test.ts', failed: ['claims once'] }
    const { lines } = summarise({ files: [store, file, file], unhandledErrors: 0, exitCode: 1 })
    expect(lines).toEqual([
      '  latchkey/engine           6 passed',
      '  latchkey/stores/postgres  3 passed, 1 FAILED',
      'FAILED   packages/latchkey/src/stores/postgres/claim.pg.test.ts > claims once',
      '9 passed, 1 failed',
    ])
  })
})

describe('areaOf', () => {
  it.each([
    ['packages/latchkey/src/stores/postgres/claim.pg.test.ts', 'latchkey/stores/postgres'],
    ['packages/latchkey/src/engine/identity.test.ts', 'latchkey/engine'],
    ['packages/latchkey/src/engine/fingerprint/json/number.test.ts', 'latchkey/engine/fingerprint'],
    ['packages/latchkey/test/races/many.system.test.ts', 'latchkey/test'],
    ['examples/payments/src/story.system.test.ts', 'examples/payments'],
    ['test/servers/postgres.pg.test.ts', 'test/servers'],
    ['a.test.ts', '.'],
  ])('of %s is %s', (file, area) => {
    expect(areaOf(file)).toBe(area)
  })
})
