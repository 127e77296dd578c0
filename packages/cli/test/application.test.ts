import { join } from 'node:path'
import Database from 'libsql'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { AdminKey } from 'latchkey/admin'
import { type SqliteStore, sqliteStore } from 'latchkey/stores/sqlite'
import { reason } from './desk.ts'
import { useProgram } from './program.ts'
import { openShop, type Shop } from './shop.ts'

describe('the application of a configuration', () => {
  const program = useProgram()
  const path = join(program.folder, 'shop.db')
  let store: SqliteStore
  let shop: Shop

  beforeAll(async () => {
    store = sqliteStore({ path, open: file => new Database(file) })
    await store.migrate()
    shop = openShop(store)
    program.write(
      'latchkey.config.ts',
      `import Database from 'libsql'
import { sqliteStore } from 'latchkey/stores/sqlite'
import { openShop } from '${join(import.meta.dirname, 'shop.ts')}'
export default {
  store: 'sqlite:./shop.db',
  application: () => {
    const store = sqliteStore({ path: './shop.db', open: file => new Database(file) })
    return { ...openShop(store), close: () => store.close() }
  },
}`,
    )
  })
  afterAll(() => store.close())

  const run = (...args: string[]) => program.run(args, { node: ['--conditions=latchkey-source'] })
  const settle = (id: string) => [
    'settle',
    id,
    '--effect',
    'charge',
    '--happened',
    '--reference',
    'ch_1',
    '--yes',
    ...reason,
  ]

  it('resumes what was settled, with its own code', async () => {
    const id = await shop.unknownPayment('resumed')
    expect(await run(...settle(id))).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('through the application'),
    })
    const worked = await run('work', '--only', 'resumer', '--once')
    expect(worked.code, worked.stderr).toBe(0)
    const shown = await run('key', 'show', id, '--json')
    expect(JSON.parse(shown.stdout) as AdminKey).toMatchObject({ state: 'completed', status: 201 })
  })

  it('is left out where a store is named for the call, and where that is asked for', async () => {
    const ids = [await shop.unknownPayment('straight 1'), await shop.unknownPayment('straight 2')]
    const named = await run(...settle(ids[0] ?? ''), '--store', 'sqlite:./shop.db')
    const asked = await run(...settle(ids[1] ?? ''), '--no-application')
    for (const { code, stderr } of [named, asked]) {
      expect({ code, stderr }).toMatchObject({ code: 0, stderr: expect.stringMatching(/^straight to .*shop\.db/) })
    }
  })

  it('must return what createLatchkey returned', async () => {
    program.write('wrong.config.js', 'export default { application: () => ({ latchkey: {} }) }')
    const { code, stderr } = await run('status', '--config', 'wrong.config.js')
    expect(code).toBe(2)
    expect(stderr).toContain('must return { latchkey }')
  })
})
