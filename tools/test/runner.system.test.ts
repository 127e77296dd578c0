import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

const repository = fileURLToPath(new URL('../..', import.meta.url))
const head = "import { beforeAll, describe, expect, it } from 'vitest'\n"
const passing = `${head}it('adds', () => expect(1 + 1).toBe(2))\n`

describe('the test runner', () => {
  let root: string
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'latchkey-runner-'))
    symlinkSync(join(repository, 'node_modules'), join(root, 'node_modules'))
  })
  afterEach(() => rmSync(root, { recursive: true }))

  async function run(files: Record<string, string>, ...args: string[]) {
    for (const [name, source] of Object.entries(files)) writeFileSync(join(root, name), source)
    const child = spawn(
      process.execPath,
      ['--import', 'tsx', join(repository, 'tools/test.ts'), `--root=${root}`, ...args],
      { cwd: repository, stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, CI: 'true', NO_COLOR: '1' } },
    )
    const exited = new Promise<number | null>(resolve => child.once('exit', resolve))
    const [output, errors, exitCode] = await Promise.all([text(child.stdout), text(child.stderr), exited])
    return { output: output + errors, lastLine: output.trimEnd().split('\n').at(-1), exitCode }
  }

  it('counts what passed and exits with 0', async () => {
    const { lastLine, exitCode } = await run({ 'a.test.ts': passing, 'b.test.ts': passing })
    expect({ lastLine, exitCode }).toEqual({ lastLine: '2 passed, 0 failed', exitCode: 0 })
  })

  it('exits with 1 when a test fails, and names it', async () => {
    const failing = `${head}describe('sums', () => it('are wrong', () => expect(1).toBe(2)))\n`
    const { output, lastLine, exitCode } = await run({ 'a.test.ts': passing, 'b.test.ts': failing })
    expect({ lastLine, exitCode }).toEqual({ lastLine: '1 passed, 1 failed', exitCode: 1 })
    expect(output).toContain('FAILED   b.test.ts > sums > are wrong')
  })

  it('exits with 1 when there is no test at all', async () => {
    const { lastLine, exitCode } = await run({})
    expect({ lastLine, exitCode }).toEqual({ lastLine: '0 passed, 0 failed', exitCode: 1 })
  })

  it('counts a broken import, a broken hook and an unhandled rejection as failures', async () => {
    const { output, lastLine, exitCode } = await run({
      'import.test.ts': `import './absent.ts'\n${passing}`,
      'hook.test.ts': `${head}describe('set up', () => { beforeAll(() => { throw new Error('no') }); it('runs', () => {}) })\n`,
      'stray.test.ts': `${passing}void Promise.reject(new Error('stray'))\n`,
    })
    expect({ lastLine, exitCode }).toEqual({ lastLine: '1 passed, 3 failed, 1 skipped', exitCode: 1 })
    expect(output).toContain('FAILED   import.test.ts > the file itself')
    expect(output).toContain('FAILED   hook.test.ts > set up')
    expect(output).toContain('FAILED   unhandled errors: 1')
  })

  it('lists what was skipped', async () => {
    const skipping = `${passing}describe.skip('the moon [skipped: no rocket]', () => { it('a', () => {}); it('b', () => {}) })\n`
    const { output, lastLine, exitCode } = await run({ 'a.test.ts': skipping })
    expect({ lastLine, exitCode }).toEqual({ lastLine: '1 passed, 0 failed, 2 skipped', exitCode: 0 })
    expect(output).toContain('SKIPPED  a.test.ts > the moon [skipped: no rocket] (2 tests)')
  })

  it('leaves out the files that need a server when asked to be fast', async () => {
    const files = { 'a.test.ts': passing, 'b.pg.test.ts': passing, 'c.system.test.ts': passing }
    expect((await run(files, '--fast')).lastLine).toBe('1 passed, 0 failed')
  })

  it('reports a process that a test leaves behind, and ends it', async () => {
    const leaving = `${head}import { spawn } from 'node:child_process'\nit('leaves', () => void spawn('sleep', ['61'], { stdio: 'ignore' }))\n`
    const { output, lastLine, exitCode } = await run({ 'a.test.ts': leaving })
    expect({ lastLine, exitCode }).toEqual({ lastLine: '1 passed, 1 failed', exitCode: 1 })
    expect(output).toContain('processes were left running')
  })

  it('ends a run that hangs, and reports what it knows', async () => {
    const hanging = `${head}it('hangs', () => { for (;;) {} })\n`
    const { output, lastLine, exitCode } = await run({ 'b.test.ts': hanging }, '--time-limit-minutes=0.1')
    expect({ lastLine, exitCode }).toEqual({ lastLine: '0 passed, 1 failed', exitCode: 1 })
    expect(output).toContain('the time limit of 0.1 minutes passed')
  })
})
