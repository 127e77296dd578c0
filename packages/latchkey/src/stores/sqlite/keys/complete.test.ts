import Database from 'libsql'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { type SqliteHarness, sqliteHarness } from '../../../../test/sqlite/fixture.ts'
import { claimRequest, hourMs, identity, outcome } from '../../../../test/sqlite/requests.ts'
import { type Clock, systemClock } from '../../../ports/clock.ts'
import type { Claim } from '../../../ports/store.ts'
import type { SqliteStore } from '../index.ts'
import { completeManySql } from './complete.ts'

const range = (count: number) => Array.from({ length: count }, (_, at) => at)

let harness: SqliteHarness
let outside: InstanceType<typeof Database>
let store: SqliteStore
/** How often the driver ran the statement for many, and for one. */
let runs: { many: number; one: number }

/** Its time stands still, so that no batch ends early on a busy machine. */
const clock: Clock = { ...systemClock, monotonicMs: () => 0 }

const open = (path: string) => {
  const database = new Database(path)
  const prepare = database.prepare.bind(database)
  const watched = (sql: string) => {
    const statement = prepare(sql)
    const run = statement.run.bind(statement)
    statement.run = (...parameters: unknown[]) => {
      if (sql === completeManySql) runs.many += 1
      else if (sql.includes('UPDATE latchkey_keys SET state = 2')) runs.one += 1
      return run(...parameters)
    }
    return statement
  }
  // Its type depends on what is bound, which nothing here looks at.
  database.prepare = watched as typeof database.prepare
  return database
}

beforeEach(async () => {
  harness = await sqliteHarness(path => new Database(path))
  outside = new Database(harness.path)
  store = await harness.open({ open, clock })
  runs = { many: 0, one: 0 }
})
afterEach(async () => {
  outside.close()
  await harness.close()
})

function claimed(count: number): Promise<readonly Claim[]> {
  return Promise.all(
    range(count).map(async key => {
      const result = await store.claim(claimRequest(key))
      if (result.kind !== 'won') throw new Error(`key ${key} is taken`)
      return result.claim
    }),
  )
}

function complete(claim: Claim | undefined, body: string) {
  if (claim === undefined) throw new Error('there is no such claim')
  return store.complete(claim, outcome(body), hourMs)
}

async function bodyOf(key: number): Promise<string> {
  const record = await store.read(identity(key).id)
  return record?.state === 'completed' ? Buffer.from(record.outcome?.body ?? []).toString() : String(record?.state)
}

const bodies = (count: number) => Promise.all(range(count).map(bodyOf))

it('completes many by a statement for every sixteen, and the last two one by one', async () => {
  const claims = await claimed(34)
  const written = await Promise.all(claims.map((claim, key) => complete(claim, `body ${key}`)))
  expect(new Set(written)).toEqual(new Set(['written']))
  expect(runs).toEqual({ many: 2, one: 2 })
  expect(await bodies(34)).toEqual(range(34).map(key => `body ${key}`))
})

it('leaves places empty where fewer are completed', async () => {
  const claims = await claimed(5)
  expect(await Promise.all(claims.map(claim => complete(claim, 'done')))).toEqual(Array(5).fill('written'))
  expect(runs).toEqual({ many: 1, one: 0 })
})

it.each([
  ['fence', (claim: Claim) => ({ ...claim, fence: 7 })],
  ['claim id', (claim: Claim) => ({ ...claim, claimId: 'of another' })],
])('refuses the one with the wrong %s, and writes the others', async (_, spoil) => {
  const claims = await claimed(6)
  const given = claims.map((claim, key) => (key === 2 ? spoil(claim) : claim))
  const results = await Promise.all(given.map((claim, key) => complete(claim, `body ${key}`)))
  expect(results).toEqual(range(6).map(key => (key === 2 ? 'claim-lost' : 'written')))
  expect(await bodies(6)).toEqual(range(6).map(key => (key === 2 ? 'in_progress' : `body ${key}`)))
  for (const { id } of claims) {
    const { evidence } = await store.inspect(id)
    expect(evidence).toHaveLength(id === identity(2).id ? 1 : 0)
  }
})

it('settles the one that has become unknown, with its evidence, and writes the others', async () => {
  const claims = await claimed(6)
  const [late] = claims
  if (late === undefined) throw new Error('nothing was claimed')
  await store.fail(late, { to: 'unknown', errorCode: 'TimeoutError', dueInMs: 0 })
  const results = await Promise.all(claims.map((claim, key) => complete(claim, `body ${key}`)))
  expect(results).toEqual(Array(6).fill('written'))
  expect(await bodies(6)).toEqual(range(6).map(key => `body ${key}`))
  expect((await store.inspect(late.id)).evidence).toMatchObject([
    { source: 'late-owner', verdict: 'happened', applied: true },
  ])
})

it('stores large answers beside small ones', async () => {
  const claims = await claimed(6)
  const body = (key: number) => (key === 3 ? 'large'.repeat(1_000) : `body ${key}`)
  const results = await Promise.all(claims.map((claim, key) => complete(claim, body(key))))
  expect(results).toEqual(Array(6).fill('written'))
  expect(runs).toEqual({ many: 1, one: 1 })
  expect(await bodies(6)).toEqual(range(6).map(body))
})

it.each([
  ['small', 'first'],
  ['large', 'first'.repeat(1_000)],
])('stores the first of two answers of one claim, a %s one', async (_, first) => {
  const claims = await claimed(5)
  const twice = [complete(claims[0], first), ...claims.map(claim => complete(claim, 'second'))]
  expect(await Promise.all(twice)).toEqual(Array(6).fill('written'))
  expect(await bodies(2)).toEqual([first, 'second'])
})

it('fails only the one whose row the file does not take', async () => {
  const claims = await claimed(20)
  outside.exec(`
    CREATE TRIGGER bad BEFORE UPDATE ON latchkey_keys WHEN NEW.id = '${identity(7).id}'
    BEGIN SELECT RAISE(ABORT, 'this row is bad'); END`)
  const results = await Promise.allSettled(claims.map((claim, key) => complete(claim, `body ${key}`)))
  expect(results.map(({ status }) => status)).toEqual(range(20).map(key => (key === 7 ? 'rejected' : 'fulfilled')))
  expect(results[7]).toMatchObject({ reason: { code: 'store-unavailable', message: /this row is bad/ } })
  expect(await bodies(20)).toEqual(range(20).map(key => (key === 7 ? 'in_progress' : `body ${key}`)))
})

it.each([
  ['an empty table', 0],
  ['a table of one row, by its statistics', 1],
])('finds the rows by the index, also in %s', async (_, rows) => {
  await claimed(rows)
  outside.exec('ANALYZE')
  const steps = outside.prepare(`EXPLAIN QUERY PLAN ${completeManySql}`).all([]) as { detail: string }[]
  const plan = steps.map(({ detail }) => detail).join('\n')
  expect(plan).toContain('SEARCH k USING INDEX sqlite_autoindex_latchkey_keys_1 (id=?)')
  expect(plan).toContain('SEARCH k USING INTEGER PRIMARY KEY (rowid=?)')
  expect(plan).not.toContain('SCAN k')
})
