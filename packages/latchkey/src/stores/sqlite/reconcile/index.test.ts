import Database from 'libsql'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type SqliteHarness, sqliteHarness } from '../../../../test/sqlite/fixture.ts'
import { claimRequest, hourMs, identity, outcome } from '../../../../test/sqlite/requests.ts'
import type { Finding } from '../../../ports/reconciliation.ts'
import type { Claim } from '../../../ports/store.ts'
import { waitingSql } from './apply.ts'
import { sqliteMigrations, type SqliteStore } from '../index.ts'
import { byKeySql } from '../steps/journal.ts'
import { forgetReceivedSql, namedSql } from './keep.ts'
import { dueSql, unknownsSql } from './look-ups.ts'
import { expiredSql } from '../keys/reap.ts'

const { operation } = identity(1)
const options = { quarantineMs: hourMs, retentionMs: hourMs }

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

async function own(store: SqliteStore, key: number): Promise<Claim> {
  const result = await store.claim(claimRequest(key))
  if (result.kind !== 'won') throw new Error(`key ${key} is taken`)
  return result.claim
}

async function unknown(store: SqliteStore, key: number): Promise<Claim> {
  const claim = await own(store, key)
  await store.fail(claim, { to: 'unknown', errorCode: 'TimeoutError', dueInMs: 0 })
  return claim
}

function found(ref: string): Finding {
  return { source: 'ledger', ref, verdict: { kind: 'happened', outcome: outcome(ref) } }
}

function lookUp(store: SqliteStore) {
  return store.reconciliation.lookups({ operation, firstInMs: 0, leaseMs: hourMs, limit: 10 })
}

const rowOf = (key: number, state: number, columns: string, values: string) =>
  outside.exec(`
    INSERT INTO latchkey_keys (id, scope, operation, state, recovery, fingerprint, fence, claim_id, attempts, crashes,
      created_at_ms, expires_at_ms, ${columns})
    VALUES ('${identity(key).id}', 'tenant', '${operation}', ${state}, 0, CAST('v1 asked' AS BLOB), 4, 'before', 4, 0,
      0, 9e15, ${values})`)

describe('a file of the release before', () => {
  beforeEach(() => {
    for (const { sql } of sqliteMigrations.slice(0, 3)) outside.exec(sql)
  })

  it('has its unknown rows looked up, and their quarantine begins with the new tables', async () => {
    rowOf(1, 4, 'last_error_code', `'TimeoutError'`)
    rowOf(2, 3, 'due_at_ms', '0')
    const store = await harness.open()
    expect(await lookUp(store)).toMatchObject([{ id: identity(1).id, fence: 4, look: 1, tries: 1 }])
    const never = { source: 'ledger', ref: 'none', verdict: { kind: 'never-happened' } } as const
    const subject = { id: identity(1).id, effect: undefined }
    const kept = await store.reconciliation.keep(subject, never)
    if (kept.kind !== 'kept') throw new Error(kept.kind)
    expect(await store.reconciliation.apply(kept.evidenceId, options)).toMatchObject({ kind: 'too-early' })
  })

  it('keeps its evidence, in order, and says a late owner said it once', async () => {
    const say = (verdict: string) =>
      `INSERT OR IGNORE INTO latchkey_evidence (id, source, verdict, applied, at_ms, fence, claim_id)
       VALUES ('${identity(1).id}', 'late-owner', '${verdict}', 0, 7, 3, 'before')`
    for (const verdict of ['unknown', 'happened']) outside.exec(say(verdict))
    const store = await harness.open()
    // As a process of that release says it again.
    outside.exec(say('happened'))
    const note = { source: 'late-owner', effect: undefined, atMs: 7, applied: false }
    expect((await store.inspect(identity(1).id)).evidence).toEqual([
      { ...note, verdict: 'unknown' },
      { ...note, verdict: 'happened' },
    ])
  })
})

describe('a look-up row', () => {
  const shown = () => outside.prepare('SELECT id, fence FROM latchkey_lookups').all()

  it('is there exactly while its key is unknown, whoever writes the state', async () => {
    const store = await harness.open()
    const claim = await own(store, 1)
    expect(shown()).toEqual([])
    // As a process of an older release does.
    outside.exec('UPDATE latchkey_keys SET state = 4, locked_until_ms = NULL')
    expect(shown()).toEqual([{ id: claim.id, fence: claim.fence }])
    expect(await lookUp(store)).toHaveLength(1)
    outside.exec('UPDATE latchkey_keys SET state = 3, due_at_ms = 0')
    expect(shown()).toEqual([])
    outside.exec('UPDATE latchkey_keys SET state = 4, due_at_ms = NULL')
    outside.exec('DELETE FROM latchkey_keys')
    expect(shown()).toEqual([])
  })

  it('stays as it is when the state is written again, so that no quarantine begins anew', async () => {
    const store = await harness.open()
    await unknown(store, 1)
    await lookUp(store)
    const before = outside.prepare('SELECT * FROM latchkey_lookups').all()
    outside.exec('UPDATE latchkey_keys SET state = 4')
    expect(outside.prepare('SELECT * FROM latchkey_lookups').all()).toEqual(before)
  })
})

it('never gives the number of a deleted piece of evidence to another one', async () => {
  const store = await harness.open()
  const { reconciliation } = store
  const gone = await own(store, 1)
  const first = await reconciliation.keep({ id: gone.id, effect: undefined }, found('a'))
  await store.complete(gone, outcome('done'), 1)
  await harness.advance(99 * hourMs)
  expect(await store.reap({ limit: 10 })).toBe(1)
  const second = await reconciliation.keep({ id: (await unknown(store, 2)).id, effect: undefined }, found('b'))
  if (first.kind !== 'kept' || second.kind !== 'kept') throw new Error(`${first.kind} ${second.kind}`)
  expect(second.evidenceId).not.toBe(first.evidenceId)
  expect(await reconciliation.apply(first.evidenceId, options)).toEqual({ kind: 'not-applicable', state: undefined })
})

it('takes what is said of a second life of a key for news, though its name was heard in the first', async () => {
  const store = await harness.open()
  const { reconciliation } = store
  const subject = { id: identity(1).id, effect: undefined }
  const first = await own(store, 1)
  const before = await reconciliation.keep(subject, found('entry'))
  await store.complete(first, outcome('done'), 1)
  await harness.advance(99 * hourMs)
  await unknown(store, 1)
  expect(await reconciliation.waiting({ limit: 10 })).toEqual([])
  const after = await reconciliation.keep(subject, found('entry'))
  if (before.kind !== 'kept' || after.kind !== 'kept') throw new Error(`${before.kind} ${after.kind}`)
  expect(await reconciliation.apply(before.evidenceId, options)).toMatchObject({ kind: 'not-applicable' })
  expect(await reconciliation.apply(after.evidenceId, options)).toEqual({ kind: 'settled', to: 'completed' })
  expect((await store.inspect(subject.id)).evidence).toHaveLength(2)
})

describe('the tables of reconciliation', () => {
  it('give every worker a way in without a scan of keys, evidence, steps or messages', async () => {
    await harness.open()
    for (const [sql, parameters, ...indexes] of [
      [dueSql, [operation, 0, 0, 1], 'latchkey_lookups_due (operation=? AND look_up_at_ms<?)'],
      [waitingSql, [1], 'SEARCH e USING INDEX latchkey_evidence_of (id=?)'],
      [expiredSql, [0, 1], 'latchkey_keys_expiry (expires_at_ms<?)'],
      [byKeySql, ['key'], 'latchkey_steps_by_key (downstream_key=?)'],
      [namedSql, ['id', 'ledger', 'ref'], 'latchkey_evidence_named (id=? AND source=? AND ref=?)'],
      [forgetReceivedSql, [0, 1], 'latchkey_received_at (at_ms<?)'],
      // By nature a look at each unknown row, and at nothing else.
      [unknownsSql, [], 'COVERING INDEX latchkey_lookups_due'],
    ] as const) {
      const steps = outside.prepare(`EXPLAIN QUERY PLAN ${sql}`).all([...parameters]) as { detail: string }[]
      const plan = steps.map(({ detail }) => detail).join('\n')
      for (const index of indexes) expect(plan).toContain(index)
      expect(plan).not.toMatch(/SCAN (k|e|s|latchkey_(keys|evidence|steps|received))\b/)
    }
  })
})
