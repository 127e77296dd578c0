import Database from 'libsql'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { type SqliteHarness, sqliteHarness } from '../../../../test/sqlite/fixture.ts'
import { claimRequest } from '../../../../test/sqlite/requests.ts'
import { sqliteMigrations, sqliteStore, type SqliteStore } from '../index.ts'

let harness: SqliteHarness
let outside: InstanceType<typeof Database>
let store: SqliteStore
beforeEach(async () => {
  harness = await sqliteHarness(path => new Database(path))
  outside = new Database(harness.path)
  store = sqliteStore({ path: harness.path, open: path => new Database(path) })
})
afterEach(async () => {
  outside.close()
  await store.close()
  await harness.close()
})

/** Every way in says the same. */
async function expectFault(kind: string, message: RegExp): Promise<void> {
  expect(await store.check()).toMatchObject({ kind, message })
  await expect(store.claim(claimRequest(1))).rejects.toMatchObject({ code: `store-${kind}`, message })
}

it('finds a file without tables, one with older ones, and no fault once they are there', async () => {
  await expectFault('not-migrated', /store\.migrate\(\)/)
  for (const { sql } of sqliteMigrations.slice(0, 5)) outside.exec(sql)
  await expectFault('not-migrated', /store\.migrate\(\)/)
  await store.migrate()
  expect(await store.check()).toEqual({ kind: 'fit' })
})

it.each([
  ['another shape', 'CREATE TABLE latchkey_migrations (id INTEGER PRIMARY KEY, title TEXT)'],
  [
    'other steps',
    `CREATE TABLE latchkey_migrations (version INTEGER PRIMARY KEY, name TEXT, applied_at_ms INTEGER);
     INSERT INTO latchkey_migrations VALUES (1, 'init', 0), (500, 'users', 0)`,
  ],
  ['keys and no steps', 'CREATE TABLE latchkey_keys (id TEXT)'],
])('changes nothing in a file whose tables of these names have %s', async (_, text) => {
  outside.exec(text)
  await expect(store.migrate()).rejects.toMatchObject({ code: 'store-foreign', message: /another file/ })
  await expectFault('foreign', /another file/)
  expect(
    outside.prepare(`SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'latchkey%'`).all(),
  ).toHaveLength(1)
})

it('refuses a file that a newer release has migrated, unless that shares it with this one', async () => {
  await store.migrate()
  outside.exec(`INSERT INTO latchkey_migrations VALUES (99, 'of tomorrow', 0, NULL)`)
  store = sqliteStore({ path: harness.path, open: path => new Database(path) })
  await expect(store.migrate()).rejects.toMatchObject({ code: 'store-newer', message: /step 99, "of tomorrow"/ })
  await expectFault('newer', /step 99, "of tomorrow"/)
  outside.exec(`UPDATE latchkey_migrations SET shared_from = ${sqliteMigrations.length} WHERE version = 99`)
  await store.migrate()
  expect(await store.check()).toEqual({ kind: 'fit' })
  expect(await store.claim(claimRequest(1))).toMatchObject({ kind: 'won' })
})
