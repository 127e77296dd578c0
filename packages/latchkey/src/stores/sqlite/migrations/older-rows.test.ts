import Database from 'libsql'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type SqliteHarness, sqliteHarness } from '../../../../test/sqlite/fixture.ts'
import { atomicRequest, claimRequest, hourMs, identity, outcome } from '../../../../test/sqlite/requests.ts'
import { sqliteMigrations, type SqliteStore } from '../index.ts'

let harness: SqliteHarness
let outside: InstanceType<typeof Database>
beforeEach(async () => {
  harness = await sqliteHarness(path => new Database(path))
  outside = new Database(harness.path)
})
afterEach(async () => {
  outside.close()
  await harness.close()
})

const claimOf = (key: number) => ({ id: identity(key).id, fence: 4, claimId: `owner ${key}` })

/** As a process of the release before writes a grant, an answer and an end in doubt. */
const before = {
  grant: (key: number) =>
    outside.exec(`
      REPLACE INTO latchkey_keys (id, scope, operation, state, recovery, fingerprint, fence, claim_id, attempts, crashes,
        locked_until_ms, due_at_ms, created_at_ms, completed_at_ms, expires_at_ms, tombstone_ms, description, last_error_code)
      VALUES ('${identity(key).id}', 'tenant', 'orders.create', 1, 0, CAST('v1 asked' AS BLOB), 4, 'owner ${key}', 4, 0,
        9e15, NULL, 0, NULL, 9e15, NULL, NULL, NULL)`),
  complete: (key: number, body: string, byOperator = 0) =>
    outside.exec(`
      UPDATE latchkey_keys SET state = 2, completed_at_ms = 1, locked_until_ms = NULL WHERE id = '${identity(key).id}';
      REPLACE INTO latchkey_outcomes (id, fence, by_operator, status, version, headers, body)
      VALUES ('${identity(key).id}', 4, ${byOperator}, 201, 1, '[["Content-Type","text/plain"]]', CAST('${body}' AS BLOB))`),
  doubt: (key: number) =>
    outside.exec(`UPDATE latchkey_keys SET state = 4, locked_until_ms = NULL WHERE id = '${identity(key).id}'`),
}

/** The drivers give bytes as a Buffer here and as a plain Uint8Array there. */
async function replayed(store: SqliteStore, key: number) {
  const result = await store.claim(claimRequest(key))
  if (result.kind !== 'seen') return result.kind
  const { outcome: found } = result.record
  return found && { ...found, body: Buffer.from(found.body ?? []) }
}

const apart = () => outside.prepare('SELECT id FROM latchkey_outcomes ORDER BY id').all()
const inRow = () => outside.prepare('SELECT id FROM latchkey_keys WHERE outcome IS NOT NULL ORDER BY id').all()
const ids = (...keys: number[]) => keys.map(key => ({ id: identity(key).id }))

describe('rows of the release before', () => {
  beforeEach(() => {
    for (const { sql } of sqliteMigrations.slice(0, 4)) outside.exec(sql)
    for (const key of [1, 2, 3, 4]) before.grant(key)
    before.complete(1, 'by its owner')
    before.complete(2, 'by a person', 1)
    before.doubt(3)
  })

  it('are replayed, owned, looked up and listed as they were', async () => {
    const store = await harness.open()
    expect(await replayed(store, 1)).toEqual(outcome('by its owner'))
    expect(await replayed(store, 2)).toEqual(outcome('by a person'))
    expect(await replayed(store, 4)).toBeUndefined()
    const query = { operation: 'orders.create', firstInMs: 0, leaseMs: hourMs, limit: 10 }
    expect(await store.reconciliation.lookups(query)).toMatchObject([{ id: identity(3).id, fence: 4, tries: 1 }])
    expect((await store.list({ limit: 10 })).records.map(({ state }) => state)).toEqual([
      ...['completed', 'completed', 'unknown', 'in_progress'],
    ])
    expect(await store.complete(claimOf(4), outcome('in time'), hourMs)).toBe('written')
    expect(await replayed(store, 4)).toEqual(outcome('in time'))
    expect([apart(), inRow()]).toEqual([ids(1, 2), ids(4)])
  })

  it('tell an owner that repeats itself from one whose answer is another’s', async () => {
    const store = await harness.open()
    expect(await store.complete(claimOf(1), outcome('again'), hourMs)).toBe('written')
    expect(await store.complete(claimOf(2), outcome('late'), hourMs)).toBe('claim-lost')
    expect(await replayed(store, 1)).toEqual(outcome('by its owner'))
    expect(await store.complete(claimOf(4), outcome('in time'), hourMs)).toBe('written')
    expect(await store.complete(claimOf(4), outcome('again'), hourMs)).toBe('written')
    expect(await replayed(store, 4)).toEqual(outcome('in time'))
  })

  it('lose their outcome, wherever it is, when they are forgotten or reaped', async () => {
    const store = await harness.open()
    await store.complete(claimOf(4), outcome('in time'), hourMs)
    await store.forget(identity(1).id, { by: 'a person', reason: 'a test' })
    outside.exec('UPDATE latchkey_keys SET expires_at_ms = 1')
    expect(await store.reap({ limit: 10 })).toBe(2)
    expect([apart(), inRow()]).toEqual([[], []])
  })
})

describe('a process of the release before, which shares the file while it is replaced', () => {
  it('has its answers replayed, and its grants empty of an earlier answer', async () => {
    const store = await harness.open()
    before.grant(1)
    before.complete(1, 'of the other process')
    expect(await replayed(store, 1)).toEqual(outcome('of the other process'))
    const result = await store.claim(claimRequest(2))
    if (result.kind !== 'won') throw new Error(result.kind)
    await store.complete(result.claim, outcome('first'), hourMs)
    before.grant(2)
    expect(inRow()).toEqual([])
    before.complete(2, 'second')
    expect(await replayed(store, 2)).toEqual(outcome('second'))
  })
})

describe('an outcome', () => {
  it('is kept with its key when it is small and its owner’s, and apart when it is not', async () => {
    const store = await harness.open()
    const [small, large] = ['x'.repeat(500), 'x'.repeat(1_025)]
    for (const [key, body] of [
      [1, small],
      [2, large],
    ] as const) {
      const result = await store.claim(claimRequest(key))
      if (result.kind === 'won') await store.complete(result.claim, outcome(body), hourMs)
    }
    for (const [key, body] of [
      [3, small],
      [4, large],
    ] as const) {
      await store.transactor.transaction(async tx => {
        await store.transactor.reserve(tx, atomicRequest(key))
        await store.transactor.record(tx, atomicRequest(key), outcome(body), 0)
        return 'commit'
      })
    }
    const doubtful = await store.claim(claimRequest(5))
    if (doubtful.kind !== 'won') throw new Error(doubtful.kind)
    await store.fail(doubtful.claim, { to: 'unknown', errorCode: 'E', dueInMs: 0 })
    const act = { by: 'a person', reason: 'a test' }
    await store.settle(doubtful.claim.id, { kind: 'happened', outcome: outcome(small) }, act, hourMs)
    expect([inRow(), apart()]).toEqual([ids(1, 3), ids(2, 4, 5)])
    const bodies = await Promise.all([1, 2, 3, 4, 5].map(key => replayed(store, key)))
    expect(bodies).toEqual([small, large, small, large, small].map(body => outcome(body)))
  })

  it('of an earlier life of the row is gone with the next grant, and nothing is left behind a tombstone', async () => {
    const store = await harness.open()
    for (const key of [1, 2]) {
      const result = await store.claim({ ...claimRequest(key), ...(key === 2 ? { tombstoneMs: 99 * hourMs } : {}) })
      if (result.kind === 'won') await store.complete(result.claim, outcome('first'), hourMs)
    }
    await harness.advance(30 * hourMs)
    expect(await store.claim(claimRequest(1))).toMatchObject({ kind: 'won', from: 'expired', claim: { fence: 2 } })
    expect(inRow()).toEqual(ids(2))
    expect(await store.reap({ limit: 10 })).toBe(1)
    expect(inRow()).toEqual([])
    expect(await store.read(identity(2).id)).toMatchObject({ gone: true, outcome: undefined })
  })
})
