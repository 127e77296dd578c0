/** Key row and business rows in one commit. */
import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import { isLatchkeyError } from 'latchkey'
import type { StoreCase } from '../../store-harness.ts'
import { answersAtOnceMs, open, runAtomic } from './fixture.ts'
import { answer, assertAbout, assertNextFence, assertState, atomicRequest, identity, plain } from '../fixture.ts'
import { recordOf, request, retentionMs, seen } from '../fixture.ts'

export const transactionCases: readonly StoreCase[] = [
  {
    name: 'commits key row and business row together, the row born completed',
    async run(harness) {
      const fixture = await open(harness)
      const asked = atomicRequest('a', { description: 'order 7' })
      const end = await fixture.transactor.transaction(async tx => {
        assert.deepEqual(await fixture.transactor.reserve(tx, asked), { kind: 'free', fence: 0, from: 'none' })
        await fixture.business.insert(tx, 'order 7')
        assert.equal(await fixture.transactor.record(tx, asked, answer('seven'), 0), 'recorded')
        return 'commit'
      })
      assert.deepEqual(end, { kind: 'committed' })
      assert.deepEqual(await fixture.business.values(), ['order 7'])
      const record = await recordOf(await harness.open(), asked.identity.id)
      assert.deepEqual([record.state, record.claimId, record.attempts], ['completed', asked.claimId, 1])
      assert.deepEqual([record.description, record.expired], ['order 7', false])
      // Uncommitted work was rolled back, so it may run again.
      assert.equal(record.recovery, 'rerun')
      assert.deepEqual(record.outcome && plain(record.outcome), plain(answer('seven')))
      assertNextFence(fixture.store, 0, record.fence)
      assert.ok(record.completedAtMs !== undefined)
      assertAbout(record.expiresAtMs - record.completedAtMs, retentionMs)
      const replayed = seen(await fixture.store.claim(request('a')))
      assert.deepEqual(Buffer.from(replayed.fingerprint), Buffer.from(asked.fingerprint))
    },
  },
  {
    name: 'removes key row and business row together when the work says rollback',
    async run(harness) {
      const fixture = await open(harness)
      assert.deepEqual(await runAtomic(fixture, 'a', 'rollback'), { kind: 'rolled-back' })
      assert.deepEqual(await fixture.business.values(), [])
      await assertState(fixture.store, identity('a').id, undefined)
      assert.deepEqual(await runAtomic(fixture, 'a'), { kind: 'committed' })
      assert.deepEqual(await fixture.business.values(), ['order for a'])
    },
  },
  {
    name: 'rolls back and rejects with the same error when the work rejects',
    async run(harness) {
      const { store, transactor, business } = await open(harness)
      const asked = atomicRequest('a')
      const thrown = new TypeError('the handler failed')
      const running = transactor.transaction(async tx => {
        await transactor.reserve(tx, asked)
        await business.insert(tx, 'lost')
        await transactor.record(tx, asked, answer(), 0)
        throw thrown
      })
      await assert.rejects(running, error => error === thrown)
      assert.deepEqual(await business.values(), [])
      await assertState(store, asked.identity.id, undefined)
    },
  },
  {
    name: 'shows nothing of an open transaction from outside',
    async run(harness) {
      const { store, transactor, business } = await open(harness)
      const asked = atomicRequest('a')
      await transactor.transaction(async tx => {
        await transactor.reserve(tx, asked)
        await business.insert(tx, 'not yet')
        await transactor.record(tx, asked, answer(), 0)
        assert.equal(await store.read(asked.identity.id), undefined)
        assert.deepEqual(await business.values(), [])
        return 'commit'
      })
      await assertState(store, asked.identity.id, 'completed')
    },
  },
  {
    name: 'refuses at once what is not a transaction',
    async run(harness) {
      const { store, transactor } = await open(harness)
      for (const impostor of [null, undefined, {}, { query: 'select 1' }, 'BEGIN', 7, () => {}, [], store]) {
        await assert.rejects(transactor.adopt(impostor), error => isLatchkeyError(error, 'not-a-transaction'))
      }
    },
  },
  {
    name: 'adopts an open transaction, and refuses it when it has ended',
    async run(harness) {
      const { transactor, business, store } = await open(harness)
      const asked = atomicRequest('a')
      let kept: unknown
      await transactor.transaction(async tx => {
        kept = tx
        const adopted = await transactor.adopt(tx)
        await transactor.reserve(adopted, asked)
        await business.insert(tx, 'adopted')
        await transactor.record(adopted, asked, answer(), 0)
        assert.equal(transactor.endOf(adopted), 'open')
        return 'commit'
      })
      assert.deepEqual(await business.values(), ['adopted'])
      await assertState(store, asked.identity.id, 'completed')
      await assert.rejects(transactor.adopt(kept), error => isLatchkeyError(error, 'not-a-transaction'))
    },
  },
  {
    name: 'commits a nested transaction with the whole, and rolls one back alone',
    async run(harness) {
      const { store, transactor, business } = await open(harness)
      const asked = atomicRequest('a')
      const end = await transactor.transaction(async tx => {
        await transactor.reserve(tx, asked)
        for (const last of ['COMMIT', 'ROLLBACK', 'COMMIT'] as const) {
          await business.send(tx, 'BEGIN')
          await business.insert(tx, last)
          await business.send(tx, last)
        }
        assert.deepEqual(await business.values(), [])
        assert.equal(await transactor.record(tx, asked, answer(), 0), 'recorded')
        return 'commit'
      })
      assert.deepEqual(end, { kind: 'committed' })
      assert.deepEqual(await business.values(), ['COMMIT', 'COMMIT'])
      await assertState(store, asked.identity.id, 'completed')
    },
  },
  {
    name: 'rolls a nested transaction back with the whole',
    async run(harness) {
      const { store, transactor, business } = await open(harness)
      const asked = atomicRequest('a')
      const end = await transactor.transaction(async tx => {
        await transactor.reserve(tx, asked)
        await business.send(tx, 'BEGIN')
        await business.insert(tx, 'must not stay')
        await business.send(tx, 'COMMIT')
        return 'rollback'
      })
      assert.deepEqual(end, { kind: 'rolled-back' })
      assert.deepEqual(await business.values(), [])
      await assertState(store, asked.identity.id, undefined)
    },
  },
  {
    name: 'refuses to be ended through its tx, and is as it was',
    async run(harness) {
      const { store, transactor, business } = await open(harness)
      const asked = atomicRequest('a')
      const end = await transactor.transaction(async tx => {
        await transactor.reserve(tx, asked)
        await business.insert(tx, 'kept')
        for (const command of ['COMMIT', 'ROLLBACK'] as const)
          await assert.rejects(business.send(tx, command), error => isLatchkeyError(error, 'not-a-transaction'))
        assert.deepEqual(await business.values(), [])
        assert.equal(await transactor.record(tx, asked, answer(), 0), 'recorded')
        return 'commit'
      })
      assert.deepEqual(end, { kind: 'committed' })
      assert.deepEqual(await business.values(), ['kept'])
      await assertState(store, asked.identity.id, 'completed')
    },
  },
  {
    name: 'lets transactions of different identities both commit',
    async run(harness) {
      const fixture = await open(harness)
      const ends = await Promise.all(['a', 'b', 'c', 'd'].map(key => runAtomic(fixture, key)))
      assert.deepEqual(new Set(ends.map(end => end.kind)), new Set(['committed']))
      assert.equal((await fixture.business.values()).length, 4)
    },
  },
  {
    name: 'finds after a lost reply what was committed, and nothing where it was rolled back',
    async run(harness) {
      const fixture = await open(harness)
      await runAtomic(fixture, 'kept')
      await runAtomic(fixture, 'gone', 'rollback')
      const { transactor } = await open(harness)
      const kept = await transactor.readAfterCommit(identity('kept').id, 2_000)
      assert.deepEqual(kept?.outcome && plain(kept.outcome), plain(answer('kept')))
      assert.equal(await transactor.readAfterCommit(identity('gone').id, 2_000), undefined)
    },
  },
  {
    name: 'waits for the end of the transaction before it reads after a lost reply',
    async run(harness) {
      const { transactor } = await open(harness)
      const second = await open(harness)
      const asked = atomicRequest('a')
      let reading: ReturnType<typeof transactor.readAfterCommit> | undefined
      await transactor.transaction(async tx => {
        await transactor.reserve(tx, asked)
        await transactor.record(tx, asked, answer('in time'), 0)
        reading = second.transactor.readAfterCommit(asked.identity.id, 20_000)
        await pause(answersAtOnceMs)
        return 'commit'
      })
      const record = await reading
      assert.deepEqual(record?.outcome && plain(record.outcome), plain(answer('in time')))
    },
  },
]
