import { expect, it } from 'vitest'
import { verdictOn, type VitestReport } from './vitest-report.ts'

const named = { path: 'a/b.test.ts', test: 'keeps the fence' }

function report(status: string, ...failureMessages: string[]): VitestReport {
  const fullName = 'a store keeps the fence'
  return { testResults: [{ name: '/tmp/copy/a/b.test.ts', assertionResults: [{ fullName, status, failureMessages }] }] }
}

it.each([
  ['passed', report('passed')],
  ['failed', report('failed', 'AssertionError: expected 1 to be 2')],
  ['failed', report('failed', 'AssertionError [ERR_ASSERTION]: 1 !== 2')],
  ['failed', report('failed', 'Error: expect(received).toSatisfy()\n\nReceived:')],
  ['failed', report('failed', 'Error: promise resolved "1" instead of rejecting')],
  ['broken', report('failed', 'Error: promise rejected "error: syntax error" instead of resolving')],
  ['broken', report('failed', 'error: syntax error at or near "where"')],
  ['absent', report('skipped')],
  ['absent', { testResults: [{ name: '/tmp/copy/a/b.test.ts', assertionResults: [] }] }],
] as const)('finds a test %s', (verdict, found) => {
  expect(verdictOn(named, found).kind).toBe(verdict)
})

it('takes no test of another file or another name for it', () => {
  expect(verdictOn({ ...named, path: 'c/b.test.ts' }, report('passed')).kind).toBe('absent')
  expect(verdictOn({ ...named, test: 'keeps the claim id' }, report('passed')).kind).toBe('absent')
})
