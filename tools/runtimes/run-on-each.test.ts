import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { whyNoRuntimes } from './platform.ts'
import { type Runtime, runOnEach } from './run-on-each.ts'

let broken: string
beforeEach(async () => {
  broken = await mkdtemp(join(tmpdir(), 'latchkey-runtimes-'))
  await writeFile(join(broken, 'node'), '#!/bin/sh\necho noise\necho 6 passed, 1 failed\nexit 3\n')
  await chmod(join(broken, 'node'), 0o755)
})
afterEach(() => rm(broken, { recursive: true }))

/** The Node of this test. */
const working = (version: string): Runtime => ({ version, directory: dirname(process.execPath) })

it('runs on every version, also after one that fails, and prints what each has counted', async () => {
  const said: string[] = []
  const runtimes = [working('22.1.0'), { version: '24.1.0', directory: broken }, working('26.1.0')]
  const program = ['-e', 'console.log("noise\\n7 passed, 0 failed")']
  expect(await runOnEach(runtimes, program, line => said.push(line))).toEqual({ passed: 2, failed: 1 })
  const [summary = ''] = said.slice(-1)
  expect(summary).toMatch(/^Node 22\.1\.0 +\d+\.\d s {2}7 passed, 0 failed$/m)
  expect(summary).toMatch(/^Node 24\.1\.0 +\d+\.\d s {2}6 passed, 1 failed: FAILED, exit code 3$/m)
  expect(summary).toMatch(/^Node 26\.1\.0 +\d+\.\d s {2}7 passed, 0 failed$/m)
  expect(summary.split('\n').at(-1)).toBe('2 passed, 1 failed')
})

it('lets programs that look for node find the same one', async () => {
  const said: string[] = []
  const program = ['-e', 'console.log(require("node:child_process").execFileSync("which", ["node"]).toString())']
  await runOnEach([working('22.1.0')], program, line => said.push(line))
  expect(said.at(-1)).toContain(`  ${join(dirname(process.execPath), 'node')}\n`)
})

it('says which platform the binaries are for', () => {
  expect(whyNoRuntimes({ platform: 'linux', arch: 'x64' })).toBeUndefined()
  expect(whyNoRuntimes({ platform: 'darwin', arch: 'arm64' })).toMatch(/for linux-x64, and this is darwin-arm64$/)
})
