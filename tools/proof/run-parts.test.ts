import { expect, it } from 'vitest'
import { type Part, runParts } from './run-parts.ts'

const node = (name: string, code: string, minutesMax = 1): Part => ({
  name,
  command: [process.execPath, '-e', code],
  minutesMax,
})

it('runs every part, also after one that fails, and counts them in the last line', async () => {
  const said: string[] = []
  const parts = [
    node('good', ''),
    node('bad', 'process.exit(3)'),
    node('hanging', 'setInterval(() => {}, 1000)', 0.01),
    { name: 'absent', command: ['/no/such/program'], minutesMax: 1 } as const,
    node('good again', ''),
  ]
  expect(await runParts(parts, line => said.push(line))).toEqual({ passed: 2, failed: 3 })
  const [summary = ''] = said.slice(-1)
  expect(summary.split('\n').at(-1)).toBe('2 passed, 3 failed')
  expect(summary).toMatch(/^good +\d+\.\d s {2}ok$/m)
  expect(summary).toMatch(/^bad +\d+\.\d s {2}FAILED, exit code 3$/m)
  expect(summary).toMatch(/^hanging +\d+\.\d s {2}FAILED, ended by SIGKILL$/m)
  expect(summary).toMatch(/^absent +\d+\.\d s {2}FAILED, .*ENOENT$/m)
})
