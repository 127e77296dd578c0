import Database from 'libsql'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type SqliteHarness, sqliteHarness } from '../../../../test/sqlite/fixture.ts'
import { atomicRequest, claimRequest, hourMs, identity, outcome } from '../../../../test/sqlite/requests.ts'
import { isLatchkeyError } from '../../../ports/errors.ts'
import type { Claim, ClaimRequest } from '../../../ports/store.ts'
import { listSql } from '../keys/operator.ts'
import { resumableSql } from '../keys/resumable.ts'
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

const work = { version: 1, input: '{"amount":7}' }
const key = '00000000-0000-4000-8000-00000000c0de'
const intent = { position: 0, name: 'charge', epoch: 0, key, windowMs: undefined }

function phasedRequest(key: number): ClaimRequest {
  return { ...claimRequest(key), recovery: 'resume', work }
}

async function own(store: SqliteStore, key: number): Promise<Claim> {
  const result = await store.claim(phasedRequest(key))
  if (result.kind !== 'won') throw new Error(`key ${key} is taken`)
  return result.claim
}

describe('a phase', () => {
  it('begins its transaction when it is entered, and not before', async () => {
    const store = await harness.open()
    const claim = await own(store, 1)
    const end = await store.transactor.transaction(async tx => {
      expect(() => tx.run('INSERT INTO orders VALUES (?1)', ['too early'])).toThrow('has not begun')
      // Whoever writes now does not wait for this phase.
      await own(store, 2)
      expect(await store.phases.enterPhase(tx, claim)).toBe('written')
      tx.run('INSERT INTO orders VALUES (?1)', ['in time'])
      await store.phases.recordPhase(tx, claim, { position: 0, name: 'record', value: undefined }, hourMs)
      return 'commit'
    })
    expect(end.kind).toBe('committed')
    expect(await harness.business?.values()).toEqual(['in time'])
  })

  it('keeps out a claim that would take the row over, until it has renewed the lease', async () => {
    const store = await harness.open()
    const claim = await own(store, 1)
    await harness.advance(2 * hourMs)
    let takeover: Promise<unknown> | undefined
    await store.transactor.transaction(async tx => {
      await store.phases.enterPhase(tx, claim)
      takeover = store.claim(phasedRequest(1)).then(result => result.kind)
      await new Promise(resolve => setTimeout(resolve, 30))
      await store.phases.recordPhase(tx, claim, { position: 0, name: 'record', value: undefined }, hourMs)
      return 'commit'
    })
    expect(await takeover).toBe('seen')
  })

  it('says that the file is locked when another process holds it for too long', async () => {
    const store = await harness.open({ waitMs: 60 })
    const claim = await own(store, 1)
    outside.exec('BEGIN IMMEDIATE')
    const phase = store.transactor.transaction(async tx => {
      await store.phases.enterPhase(tx, claim)
      return 'commit'
    })
    await expect(phase).rejects.toSatisfy(error => isLatchkeyError(error, 'store-unavailable'))
    outside.exec('ROLLBACK')
    expect((await store.read(claim.id))?.state).toBe('in_progress')
  })

  it('is refused in a transaction that is not of this store', async () => {
    const store = await harness.open()
    const other = await harness.open()
    const claim = await own(store, 1)
    await other.transactor.transaction(async tx => {
      const entering = store.phases.enterPhase(tx, claim)
      await expect(entering).rejects.toSatisfy(error => isLatchkeyError(error, 'not-a-transaction'))
      return 'rollback'
    })
  })
})

describe('a row with an open intent', () => {
  it('leaves lease and step alone when the same owner asks for what does not fit the journal', async () => {
    const store = await harness.open()
    const claim = await own(store, 1)
    await store.steps.openIntent(claim, intent, hourMs)
    const before = await store.steps.readJournal(claim.id)
    for (const misfit of [
      { ...intent, name: 'refund' },
      { ...intent, epoch: 1 },
    ]) {
      expect(await store.steps.openIntent(claim, misfit, 9 * hourMs)).toBe('claim-lost')
    }
    expect(await store.steps.recordResult(claim, { position: 3, value: '1' }, 9 * hourMs)).toBe('claim-lost')
    expect(await store.steps.readJournal(claim.id)).toEqual(before)
    expect((await store.read(claim.id))?.leaseLeftMs).toBeLessThanOrEqual(hourMs)
  })
})

it("a person's verdict gives no new key to an effect that was not open", async () => {
  const store = await harness.open()
  const first = await own(store, 1)
  await store.steps.openIntent(first, intent, hourMs)
  await store.fail(first, { to: 'failed_retryable', errorCode: 'ECONNREFUSED', dueInMs: 0 })
  const second = await own(store, 1)
  await store.fail(second, { to: 'unknown', errorCode: 'TimeoutError', dueInMs: 0 })
  await store.settle(second.id, { kind: 'never-happened' }, { by: 'alex', reason: 'looked' }, hourMs)
  expect((await store.steps.readJournal(second.id))?.steps).toMatchObject([{ state: 'again', epoch: 0 }])
})

describe('steps of an earlier life', () => {
  it('are gone when an atomic operation is recorded over the expired row', async () => {
    const store = await harness.open()
    const claim = await own(store, 1)
    await store.complete(claim, outcome('first'), 1)
    await harness.advance(99 * hourMs)
    await store.transactor.transaction(async tx => {
      const request = atomicRequest(1)
      const reserved = await store.transactor.reserve(tx, request)
      if (reserved.kind !== 'free') throw new Error(reserved.kind)
      await store.transactor.record(tx, request, outcome('second'), reserved.fence)
      return 'commit'
    })
    expect(await store.steps.readJournal(claim.id)).toBeUndefined()
  })

  it('are no steps of the next, also when a process of an older release deleted the row and knew no steps', async () => {
    const store = await harness.open()
    const claim = await own(store, 1)
    await store.steps.openIntent(claim, intent, hourMs)
    outside.exec('DELETE FROM latchkey_keys')
    const next = await store.claim({ ...phasedRequest(1), work: { version: 2, input: '{}' } })
    expect(next).toMatchObject({ from: 'none', journal: { work: { version: 2, input: '{}' }, steps: [] } })
  })
})

describe('the tables', () => {
  it('come to a file of the first release, and its rows go on', async () => {
    outside.exec(sqliteMigrations[0]?.sql ?? '')
    outside.exec(`
      INSERT INTO latchkey_keys (id, scope, operation, state, recovery, fingerprint, fence, claim_id, attempts, crashes,
        due_at_ms, created_at_ms, expires_at_ms)
      VALUES ('${identity(1).id}', 'tenant', 'orders.create', 3, 0, CAST('v1 asked' AS BLOB), 4, 'before', 4, 0, 0, 0, 9e15)`)
    const store = await harness.open()
    expect(await store.claim(phasedRequest(1))).toMatchObject({
      ...{ kind: 'won', from: 'failed_retryable', claim: { fence: 5 } },
      journal: { work, steps: [] },
    })
    const versions = outside.prepare('SELECT version FROM latchkey_migrations ORDER BY version').all()
    expect(versions).toEqual(sqliteMigrations.map(({ version }) => ({ version })))
  })

  it('give resumers and operators a way in without a scan', async () => {
    await harness.open()
    for (const [sql, ...indexes] of [
      [resumableSql, 'latchkey_keys_owned', 'latchkey_keys_waiting'],
      [listSql({ parked: true, limit: 1 }), 'latchkey_keys_parked'],
      [listSql({ state: 'pending', limit: 1 }), 'latchkey_keys_unusual (state=? AND id>?)'],
      [listSql({ state: 'failed_retryable', limit: 1 }), 'latchkey_keys_unusual (state=? AND id>?)'],
      [listSql({ state: 'unknown', limit: 1 }), 'latchkey_keys_unusual (state=? AND id>?)'],
    ]) {
      const steps = outside.prepare(`EXPLAIN QUERY PLAN ${sql}`).all([0, 1]) as { detail: string }[]
      const plan = steps.map(({ detail }) => detail).join('\n')
      for (const index of indexes) expect(plan).toContain(index)
      expect(plan).not.toMatch(/SCAN (k|latchkey)/)
    }
  })
})
