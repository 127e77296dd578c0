import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import manifest from '../package.json' with { type: 'json' }
import { useProgram } from './program.ts'

describe('the program', () => {
  const program = useProgram()
  const { run } = program

  it('has the version of its package', async () => {
    expect((await run(['--version'])).stdout).toBe(`${manifest.version}\n`)
  })

  it('lists the exit codes in its help', async () => {
    const { code, stdout } = await run(['--help'])
    expect(code).toBe(0)
    for (const exit of [0, 1, 2, 3, 4, 5, 130]) expect(stdout).toMatch(new RegExp(`^  ${exit} +\\w`, 'm'))
  })

  it.each([
    ['no command', []],
    ['an unknown command', ['mirgate']],
    ['an unknown option', ['doctor', '--fast']],
    ['an unknown word after a command', ['migrate', 'later']],
    ['two formats', ['config', 'show', '--json', '--jsonl']],
    ['a duration that is none', ['config', 'show', '--timeout', 'soon']],
    ['a store whose variable is not set', ['doctor']],
    ['a store of another kind', ['doctor', '--store', 'mysql://127.0.0.1/x']],
    ['a shell without a completion', ['completion', 'tcsh']],
    ['a profile that is not there', ['config', 'show', '--profile', 'staging']],
  ])('exits with 2 for %s, and writes nothing to stdout', async (_what, args) => {
    const { code, stdout, stderr } = await run(args)
    expect(stderr).not.toBe('')
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  })

  it.each(['postgres://db/shop?password=s3cr3t', 'postgres://app:s3cr3t#x@db/shop'])(
    'refuses the password in --store %s, and does not repeat it',
    async address => {
      const { code, stderr } = await program.run(['status', '--store', address])
      expect(code).toBe(2)
      expect(stderr).not.toContain('s3cr3t')
    },
  )

  it('refuses a password in a flag, and does not repeat it', async () => {
    const { code, stderr } = await run(['doctor', '--store', 'postgres://app:secret@127.0.0.1/shop'])
    expect(code).toBe(2)
    expect(stderr).toContain('has a password')
    expect(stderr).not.toContain('secret')
  })

  it('exits with 5 where the store cannot be reached, and says so as JSON where that is asked for', async () => {
    const env = { DATABASE_URL: 'postgres://app:secret@127.0.0.1:1/shop' }
    const { code, stdout, stderr } = await run(['doctor', '--json'], { env })
    expect({ code, stdout }).toEqual({ code: 5, stdout: '' })
    expect(JSON.parse(stderr)).toMatchObject({ error: { exit: 5, message: expect.stringContaining('ECONNREFUSED') } })
    expect(stderr).not.toContain('secret')
  })

  it('exits with 5 where the file of the store does not exist, and makes none', async () => {
    const { code, stderr } = await run(['doctor', '--store', 'sqlite:./wrong-path.db'])
    expect(code).toBe(5)
    expect(stderr).toContain('there is no file')
    expect((await run(['doctor', '--store', 'sqlite:./wrong-path.db'])).code).toBe(5)
  })

  it('completes commands, options and shells', async () => {
    const complete = async (at: string, ...words: string[]) =>
      (await run(['__complete', `--at=${at}`, ...words])).stdout.trim().split('\n')
    expect(await complete('mig')).toEqual(['migrate'])
    expect(await complete('', 'migrate')).toEqual(['status'])
    expect(await complete('--t', 'migrate')).toEqual(['--timeout', '--to', '--token-file'])
    expect(await complete('', 'completion')).toEqual(['bash', 'fish', 'powershell', 'zsh'])
  })

  it.each(['bash', 'zsh', 'fish', 'powershell'])('prints a script for %s', async shell => {
    const { code, stdout } = await run(['completion', shell])
    expect(code).toBe(0)
    expect(stdout).toContain('latchkey __complete')
  })

  it('has a script that bash obeys', async () => {
    const { stdout } = await run(['completion', 'bash'])
    const script = join(program.folder, 'completion.bash')
    const shim = `latchkey() { ${process.execPath} ${program.file} "$@"; }`
    writeFileSync(
      script,
      `${shim}\n${stdout}\nCOMP_WORDS=(latchkey migrate st); COMP_CWORD=2; _latchkey; echo "\${COMPREPLY[@]}"`,
    )
    const { execFileSync } = await import('node:child_process')
    expect(execFileSync('bash', [script], { cwd: program.folder }).toString()).toBe('status\n')
  })
})

describe('the settings', () => {
  const program = useProgram()
  type Shown = { name: string; value?: string; origin: string }[]
  const show = async (args: readonly string[] = [], env: Record<string, string> = {}, cwd = program.folder) =>
    Object.fromEntries(
      (await program.json<Shown>(['config', 'show', '--origin', ...args], { env, cwd })).map(row => [row.name, row]),
    )

  it('come from a flag, then the environment, then the nearest file, then the file of the user', async () => {
    mkdirSync(join(program.folder, '.config/latchkey'), { recursive: true })
    mkdirSync(join(program.folder, 'deep/er'), { recursive: true })
    program.write('.config/latchkey/config.json', '{ "schema": "of_user", "timeout": "7s", "utc": true }')
    program.write(
      'latchkey.config.json',
      '{ "schema": "of_file", "profiles": { "staging": { "schema": "of_profile" } } }',
    )
    const deep = join(program.folder, 'deep/er')
    expect(await show([], {}, deep)).toMatchObject({
      schema: { value: 'of_file', origin: join(program.folder, 'latchkey.config.json') },
      timeout: { value: '7s', origin: join(program.folder, '.config/latchkey/config.json') },
      color: { value: 'auto', origin: 'default' },
    })
    expect(await show(['--profile', 'staging'])).toMatchObject({ schema: { value: 'of_profile' } })
    expect(await show([], { LATCHKEY_SCHEMA: 'of_env' })).toMatchObject({
      schema: { value: 'of_env', origin: 'LATCHKEY_SCHEMA' },
    })
    expect(await show(['--schema', 'of_flag'], { LATCHKEY_SCHEMA: 'of_env' })).toMatchObject({
      schema: { value: 'of_flag', origin: 'flag --schema' },
    })
  })

  it('stop at the root of the package', async () => {
    mkdirSync(join(program.folder, 'other'), { recursive: true })
    program.write('other/package.json', '{}')
    program.write('latchkey.config.json', '{ "schema": "of_file" }')
    expect(await show([], {}, join(program.folder, 'other'))).not.toMatchObject({ schema: { value: 'of_file' } })
  })

  it('mask secrets', async () => {
    const env = { DATABASE_URL: 'postgres://app:s3cr3t@db/shop', LATCHKEY_TOKEN: 't0k3n' }
    const { stdout } = await program.run(['config', 'show', '--origin'], { env })
    expect(stdout).toContain('postgres://app:***@db/shop')
    expect(stdout).not.toMatch(/s3cr3t|t0k3n/)
  })

  it.each([
    ['postgres://db/shop?user=app&password=s3cr3t', 'postgres://db/shop?user=app&password=***'],
    // A bare # ends the address for a parser, and what is left looks like a port.
    ['postgres://app:s3cr3t#x@db/shop', 'postgres://***'],
    ['postgres://app:77#s3cr3t@db/shop', 'postgres://***'],
    ['s3cr3t', 'no address'],
  ])('mask the secret of %s', async (address, shown) => {
    const { stdout } = await program.run(['config', 'show'], { env: { DATABASE_URL: address } })
    expect(stdout).toContain(shown)
    expect(stdout).not.toContain('s3cr3t')
  })

  it('refuse a file with a setting that is not known, and name those that are', async () => {
    program.write('wrong.json', '{ "shcema": "x" }')
    const { code, stderr } = await program.run(['config', 'show', '--config', 'wrong.json'])
    expect(code).toBe(2)
    expect(stderr).toMatch(/no setting shcema.*schema/)
  })

  it('are read from TypeScript', async () => {
    program.write('typed.config.ts', `const name: string = 'of_typescript'\nexport default { schema: name }\n`)
    expect(await show(['--config', join(program.folder, 'typed.config.ts')])).toMatchObject({
      schema: { value: 'of_typescript' },
    })
  })
})

describe('init', () => {
  const program = useProgram()

  it('writes a file for the store of the project, once', async () => {
    program.write('package.json', '{ "type": "module", "dependencies": { "ioredis": "5", "express": "5" } }')
    const { code, stderr } = await program.run(['init'])
    expect(code).toBe(0)
    expect(stderr).toContain('ioredis and express')
    const text = readFileSync(join(program.folder, 'latchkey.config.js'), 'utf8')
    expect(text).toContain(`store: 'REDIS_URL'`)
    expect(await program.json(['config', 'show'])).toContainEqual(
      expect.objectContaining({ name: 'store', value: 'REDIS_URL' }),
    )
    expect((await program.run(['init'])).code).toBe(4)
    expect(readFileSync(join(program.folder, 'latchkey.config.js'), 'utf8')).toBe(text)
  })
})
