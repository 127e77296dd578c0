/** The longest spans that Latchkey allows, a century and a little more: every store handles them alike. */
import assert from 'node:assert/strict'
import type { StoreCase } from '../../store-harness.ts'
import { open } from '../atomic/fixture.ts'
import { openSteps, ownPhased, work } from '../steps/fixture.ts'
import { act, answer, assertAbout, atomicRequest, hourMs, leaseMs, notKnown, own, recordOf } from '../fixture.ts'
import { request, retryNow, rowIn, seen, uuidOf, won } from '../fixture.ts'

const dayMs = 24 * hourMs
const centuryMs = 36_525 * dayMs
/** The sum of maximum hold and retention may exceed either. */
const longestMs = centuryMs + dayMs

const coreCases: readonly StoreCase[] = [
  {
    name: 'keeps a row for a century where it is asked to, with its lease, its tombstone and its retention',
    async run(harness) {
      const store = await harness.open()
      const claim = await own(store, 'a', { expiresInMs: longestMs, tombstoneMs: longestMs, leaseMs: longestMs })
      assert.equal(await store.heartbeat(claim, longestMs), 'written')
      assertAbout((await recordOf(store, claim.id)).leaseLeftMs, longestMs)
      assert.equal(await store.complete(claim, answer(), longestMs), 'written')
      const record = seen(await store.claim(request('a')))
      assertAbout(record.expiresAtMs - record.createdAtMs, longestMs)
      assert.deepEqual([record.state, record.expired, record.gone], ['completed', false, false])
      await harness.advance(centuryMs)
      assert.ok(seen(await store.claim(request('a'))).outcome)
      assert.equal(await store.reap({ limit: 10 }), 0)
      await harness.advance(2 * dayMs)
      assert.deepEqual([seen(await store.claim(request('a'))).gone, await store.reap({ limit: 10 })], [true, 1])
    },
  },
  {
    name: 'keeps many rows for a century that are claimed and completed at once',
    async run(harness) {
      const store = await harness.open()
      const keys = ['a', 'b', 'c', 'd']
      const asked = keys.map(key => request(key, { expiresInMs: longestMs }))
      const claims = (await Promise.all(asked.map(each => store.claim(each)))).map(result => won(result).claim)
      await Promise.all(claims.map(claim => store.complete(claim, answer(), longestMs)))
      await harness.advance(centuryMs)
      for (const key of keys) assert.equal(seen(await store.claim(request(key))).expired, false)
    },
  },
  {
    name: 'puts off a retry for a century, and keeps what a person settles for one',
    async run(harness) {
      const store = await harness.open()
      const failing = await own(store, 'failing', { expiresInMs: 2 * longestMs })
      assert.equal(await store.fail(failing, { ...retryNow, dueInMs: longestMs }), 'written')
      assertAbout(seen(await store.claim(request('failing'))).dueInMs, longestMs)
      const unknown = await rowIn.unknown(harness, store, 'unknown')
      const settled = await store.settle(unknown.id, { kind: 'happened', outcome: answer() }, act, longestMs)
      assert.deepEqual(settled, { kind: 'settled' })
      await harness.advance(centuryMs)
      assert.equal((await recordOf(store, unknown.id)).expired, false)
    },
  },
]

const facultyCases: readonly StoreCase[] = [
  {
    name: 'keeps an atomic row for a century',
    needs: ['transactions'],
    async run(harness) {
      const { store, transactor } = await open(harness)
      const atomic = atomicRequest('atomic', { retentionMs: longestMs, tombstoneMs: longestMs })
      const small = atomicRequest('small', { retentionMs: longestMs })
      for (const asked of [atomic, small]) {
        await transactor.transaction(async tx => {
          await transactor.reserve(tx, asked)
          assert.equal(await transactor.record(tx, asked, answer(), 0), 'recorded')
          return 'commit'
        })
      }
      await harness.advance(centuryMs)
      for (const { identity } of [atomic, small]) assert.equal((await recordOf(store, identity.id)).expired, false)
    },
  },
  {
    name: 'keeps queued work and an intent for a century',
    needs: ['steps'],
    async run(harness) {
      const { store, steps } = await openSteps(harness)
      const { recovery: _recovery, leaseMs: _lease, ...job } = request('job', { expiresInMs: 2 * longestMs })
      const queued = await store.enqueue({ ...job, work: { ...work, deadlineInMs: longestMs } })
      assert.deepEqual(queued, { kind: 'queued' })
      const claim = await ownPhased(store, 'phased', { expiresInMs: 2 * longestMs })
      const intent = { position: 0, name: 'charge', epoch: 0, key: uuidOf('downstream'), windowMs: longestMs }
      assert.equal(await steps.openIntent(claim, intent, leaseMs), 'written')
      await harness.advance(centuryMs)
      assert.equal((await steps.readJournal(job.identity.id))?.overdue, false)
      const [step] = (await steps.readJournal(claim.id))?.steps ?? []
      assert.equal(step?.state, 'open')
      assert.equal(await store.fail(claim, notKnown), 'written')
    },
  },
]

export const longLifeCases: readonly StoreCase[] = [...coreCases, ...facultyCases]
