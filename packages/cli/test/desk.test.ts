import { join } from 'node:path'
import Database from 'libsql'
import { afterAll, beforeAll, describe } from 'vitest'
import { type SqliteStore, sqliteStore } from 'latchkey/stores/sqlite'
import { actCases } from './act.cases.ts'
import { deskOf } from './desk.ts'
import { lookCases } from './look.cases.ts'
import { useProgram } from './program.ts'
import { openShop, type Shop } from './shop.ts'

describe('the commands on SQLite', () => {
  const program = useProgram()
  const path = join(program.folder, 'shop.db')
  let store: SqliteStore
  let shop: Shop

  const execute = (sql: string) => {
    const database = new Database(path)
    database.exec(sql)
    database.close()
  }

  beforeAll(async () => {
    store = sqliteStore({ path, open: file => new Database(file) })
    await store.migrate()
    shop = openShop(store)
  })
  afterAll(() => store.close())

  const desk = deskOf(program, () => ({
    env: { LATCHKEY_STORE: 'sqlite:./shop.db' },
    shop,
    age: async ms => execute(`UPDATE latchkey_lookups SET since_ms = since_ms - ${ms}`),
  }))
  lookCases(desk)
  actCases(desk)
})
