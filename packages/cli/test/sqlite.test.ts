import { join } from 'node:path'
import Database from 'libsql'
import { describe, expect, it } from 'vitest'
import { migrateCases } from './migrate.cases.ts'
import { useProgram } from './program.ts'

describe('migrate on SQLite', () => {
  migrateCases(useProgram(), () => ({ env: { LATCHKEY_STORE: 'sqlite:./migrated.db' } }))
})

describe('doctor on SQLite', () => {
  const program = useProgram()
  const doctor = (file: string, ...args: string[]) => program.run(['doctor', '--store', `sqlite:./${file}`, ...args])
  const file = (name: string) => join(program.folder, name)

  it('prints the statement that makes a dropped index again, and it does', async () => {
    await program.run(['migrate', '--store', 'sqlite:./dropped.db'])
    expect((await doctor('dropped.db')).stdout).not.toContain('missing')
    const database = new Database(file('dropped.db'))
    const [{ name } = { name: '' }] = database
      .prepare(`SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL AND name LIKE 'latchkey_keys%'`)
      .all() as { name: string }[]
    database.exec(`DROP INDEX ${name}`)
    const sick = await doctor('dropped.db')
    expect(sick.code).toBe(1)
    expect(sick.stdout).toContain(`the index ${name} is missing`)
    database.exec((await doctor('dropped.db', '--fix-sql')).stdout)
    database.close()
    expect((await doctor('dropped.db')).stdout).not.toContain('missing')
  })

  it('says that a file without tables has to be migrated', async () => {
    new Database(file('empty.db')).exec('CREATE TABLE orders (id INTEGER)')
    const { code, stdout } = await doctor('empty.db')
    expect(code).toBe(1)
    expect(stdout).toMatch(/FAIL {2}store .*\n.*cure: run latchkey migrate/)
  })
})
