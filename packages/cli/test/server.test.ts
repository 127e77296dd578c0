import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'libsql'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { AdminKey, Overview, ParkedMessageView } from 'latchkey/admin'
import { type SqliteStore, sqliteStore } from 'latchkey/stores/sqlite'
import { type AdminServer, startAdmin } from './admin-server.ts'
import { linesOf, noRow, reason } from './desk.ts'
import { useProgram } from './program.ts'
import { openShop, type Shop } from './shop.ts'

describe('the commands through an admin API', () => {
  const program = useProgram()
  const path = join(program.folder, 'shop.db')
  let store: SqliteStore
  let shop: Shop
  let server: AdminServer

  beforeAll(async () => {
    store = sqliteStore({ path, open: file => new Database(file) })
    await store.migrate()
    shop = openShop(store)
    server = await startAdmin(shop, { alice: 'approver', vera: 'viewer' })
  })
  afterAll(async () => {
    await server.close()
    await store.close()
  })

  const as = (name: string, ...args: string[]) => program.run(args, { env: server.env(name) })
  const straight = { env: { LATCHKEY_STORE: 'sqlite:./shop.db' } }

  it('skip a parked message in the name of who asks, and end with 4 for who may not', async () => {
    await shop.parkedMessage('letters')
    const parked = await program.json<ParkedMessageView[]>(['outbox', 'parked'], { env: server.env('alice') })
    const message = parked.find(({ topic }) => topic === 'letters')
    const skip = ['outbox', 'skip', message?.position ?? '', '--yes', ...reason]
    expect((await as('vera', ...skip)).code).toBe(4)
    expect((await as('alice', ...skip)).code).toBe(0)
    expect((await as('alice', ...skip)).code).toBe(3)
  })

  it('need a token, and one that the server knows; a file will do', async () => {
    expect((await program.run(['status', '--server', server.url])).code).toBe(2)
    const stranger = await program.run(['status'], {
      env: { ...server.env('alice'), LATCHKEY_TOKEN: 'token-of-mallory' },
    })
    expect(stranger.code).toBe(4)
    expect(stranger.stderr).not.toContain('mallory')
    writeFileSync(join(program.folder, 'token'), 'token-of-alice\n')
    expect((await program.run(['status', '--server', server.url, '--token-file', 'token'])).code).toBe(0)
  })

  it('end with 5 where nobody answers, and where something else does', async () => {
    const env = { ...server.env('alice'), LATCHKEY_SERVER: 'http://127.0.0.1:1/ops' }
    expect((await program.run(['status'], { env })).code).toBe(5)
    const wrong = { ...server.env('alice'), LATCHKEY_SERVER: server.url.replace('127.0.0.1', 'localhost') }
    expect((await program.run(['status'], { env: wrong })).code).toBe(5)
  })

  it('have the doctor knock without a token, and fail where somebody is let in', async () => {
    const closed = await program.run(['doctor', '--server', server.url], straight)
    expect(closed.stdout).toMatch(/ok +console +.* shows nothing without a sign-in/)
    const open = await startAdmin(shop, {}, { authorize: () => ({ name: 'proxy', role: 'viewer' }) })
    const { code, stdout } = await program.run(['doctor', '--server', open.url], straight)
    await open.close()
    expect(stdout).toMatch(
      /FAIL +console .*answers without a sign-in\n +cure: authorize of adminRoutes must return null/,
    )
    expect(code).toBe(1)
    const gone = await program.run(['doctor', '--server', open.url], straight)
    expect(gone.stdout).toMatch(/warn +console .*could not be asked/)
  })

  it('show the same as straight from the store', async () => {
    const id = await shop.unknownPayment('the same', { reference: 'ord_1' })
    const there = await program.json<AdminKey>(['key', 'show', id], { env: server.env('alice') })
    const here = await program.json<AdminKey>(['key', 'show', id], straight)
    const still = ({ id: row, state, version, openEffect, references, may, mayNot }: AdminKey) => ({
      ...{ row, state, version, openEffect, references, may },
      mayNot: mayNot.map(({ right }) => right),
    })
    expect(still(there)).toEqual(still(here))
    const overview = await program.json<Overview>(['status'], { env: server.env('alice') })
    expect(overview.unknown.count).toBe((await program.json<Overview>(['status'], straight)).unknown.count)
    const found = await program.run(['key', 'find', '--scope', 'acme', '--operation', 'payments.create', '--json'], {
      env: server.env('alice'),
      input: 'the same',
    })
    expect(linesOf(found.stdout.replaceAll('\n', ''))).toMatchObject([[{ id }]])
  })

  it('name the right that a role lacks, and act in the name that the server knows', async () => {
    const id = await shop.unknownPayment('rights')
    const answer = ['--effect', 'charge', '--happened', '--reference', 'ch_1', '--yes', ...reason]
    const vera = await as('vera', 'settle', id, ...answer)
    expect(vera.code).toBe(4)
    expect(vera.stderr).toContain('you lack the right settle.happened')
    expect((await as('alice', 'settle', id, ...answer)).code).toBe(0)
    const audit = await as('alice', 'audit', '--id', id, '--jsonl')
    expect(linesOf(audit.stdout)).toEqual([
      expect.objectContaining({ by: 'alice', source: 'api', from: 'unknown', to: 'pending' }),
      expect.objectContaining({ by: 'vera', refused: expect.stringContaining('not-permitted') }),
    ])
  })

  it('hear of guards as they do straight at the store', async () => {
    const id = await shop.unknownPayment('guards')
    const { version } = await program.json<AdminKey>(['key', 'show', id], { env: server.env('alice') })
    const denied = await as(
      'alice',
      'settle',
      id,
      '--effect',
      'charge',
      '--did-not-happen',
      '--evidence',
      'ticket:1',
      '--yes',
      ...reason,
    )
    expect(denied).toMatchObject({ code: 4, stderr: expect.stringMatching(/quarantine is over in/) })
    const first = ['settle', id, '--effect', 'charge', '--happened', '--reference', 'ch_1', '--yes']
    expect((await as('alice', ...first, ...reason)).code).toBe(0)
    const late = [
      'settle',
      id,
      '--effect',
      'charge',
      '--happened',
      '--reference',
      'x',
      '--yes',
      '--if-version',
      version,
    ]
    expect(await as('alice', ...late, ...reason)).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('has moved'),
    })
    expect((await as('alice', 'key', 'show', noRow)).code).toBe(3)
  })

  it('cancel a bulk act that is interrupted, and say how far it came', async () => {
    const scope = 'cut'
    for (let n = 0; n < 300; n += 1) await shop.unknownPayment(`cut ${n}`, { scope })
    let sent = false
    const args = ['unknown', 'look-up', '--all-matching', '--scope', scope, '--yes', '--jsonl', ...reason]
    const { code, stdout, stderr } = await program.run(args, {
      env: server.env('alice'),
      onOutput({ stdout: lines }, kill) {
        if (sent || lines === '') return
        sent = true
        kill('SIGINT')
      },
    })
    const results = linesOf(stdout).length
    expect(code, stderr).toBe(results === 300 ? 0 : 130)
    if (results < 300) expect(stderr).toContain(`${results} of 300 were done`)
  })
})
