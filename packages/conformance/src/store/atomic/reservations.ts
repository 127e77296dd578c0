/** Which transaction gets an identity, and what may be recorded over what. */
import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import type { Reservation } from 'latchkey'
import type { StoreCase } from '../../store-harness.ts'
import { answersAtOnceMs, open, reserved, runAtomic } from './fixture.ts'
import {
  answer,
  assertNextFence,
  atomicRequest,
  expiresInMs,
  hourMs,
  identity,
  otherFingerprint,
  own,
} from '../fixture.ts'
import { plain, recordOf, retentionMs, rowIn } from '../fixture.ts'
import { unusualScopes } from '../keys/listing.ts'

export const reservationCases: readonly StoreCase[] = [
  {
    name: 'never gives one identity to two open transactions',
    async run(harness) {
      const first = await open(harness)
      const second = await open(harness)
      const asked = atomicRequest('a')
      let other: Promise<Reservation> | undefined
      await first.transactor.transaction(async tx => {
        assert.equal((await first.transactor.reserve(tx, asked)).kind, 'free')
        other = reserved(second.transactor)
        // A store with one writer admits the second only after the first, so this case must not wait for it here.
        await Promise.race([other, pause(answersAtOnceMs)])
        await first.transactor.record(tx, asked, answer(), 0)
        return 'commit'
      })
      const found = await other
      assert.ok(found?.kind === 'busy' || found?.kind === 'seen', `the second transaction found ${found?.kind}`)
      assert.equal((await reserved(second.transactor)).kind, 'seen')
    },
  },
  {
    name: 'runs one of twelve simultaneous transactions of one identity',
    async run(harness) {
      const fixtures = [await open(harness), await open(harness), await open(harness), await open(harness)]
      await Promise.all(Array.from({ length: 3 }, () => fixtures.map(fixture => runAtomic(fixture, 'a'))).flat())
      assert.deepEqual(await fixtures[0]?.business.values(), ['order for a'])
    },
  },
  {
    name: 'gives the scope of what it recorded back byte for byte',
    async run(harness) {
      const { store, transactor } = await open(harness)
      const { record, recordLast = record } = transactor
      for (const [how, write] of Object.entries({ record, recordLast })) {
        for (const [index, scope] of unusualScopes.entries()) {
          const asked = atomicRequest('a', { identity: identity(`${how} ${index}`, { scope }) })
          await transactor.transaction(async tx => {
            const found = await transactor.reserve(tx, asked)
            assert.ok(found.kind === 'free', `the identity was ${found.kind}`)
            await write.call(transactor, tx, asked, answer(), found.fence)
            return 'commit'
          })
          assert.equal((await recordOf(store, asked.identity.id)).scope, scope)
        }
      }
    },
  },
  {
    name: 'frees the identity when its transaction rolls back',
    async run(harness) {
      const { transactor } = await open(harness)
      assert.equal((await reserved(transactor)).kind, 'free')
      assert.deepEqual(await reserved(transactor), { kind: 'free', fence: 0, from: 'none' })
    },
  },
  {
    name: 'reserves nothing over a completed, running or unknown row, and shows it',
    async run(harness) {
      const { store, transactor } = await open(harness)
      for (const state of ['completed', 'in_progress', 'unknown'] as const) {
        const claim = await rowIn[state](harness, store, state)
        const found = await reserved(transactor, atomicRequest(state))
        assert.ok(found.kind === 'seen')
        assert.deepEqual([found.record.state, found.record.claimId], [state, claim.claimId])
        if (state === 'completed')
          assert.deepEqual(found.record.outcome && plain(found.record.outcome), plain(answer()))
      }
    },
  },
  {
    name: 'reserves no row for another fingerprint',
    async run(harness) {
      const { store, transactor } = await open(harness)
      for (const state of ['completed', 'failed_retryable'] as const) {
        await rowIn[state](harness, store, state)
        const found = await reserved(transactor, atomicRequest(state, { fingerprint: otherFingerprint }))
        assert.equal(found.kind, 'seen')
      }
    },
  },
  {
    name: 'records over an expired row, a failed one that is due, and a dead lease that may be rerun, with the next fence',
    async run(harness) {
      const { store, transactor } = await open(harness)
      const expired = await rowIn.completed(harness, store, 'expired')
      await harness.advance(expiresInMs + hourMs)
      const dead = await rowIn['in_progress past its lease (rerun)'](harness, store, 'dead-lease')
      const failed = await rowIn.failed_retryable(harness, store, 'failed_retryable')
      for (const [from, old] of [
        ['expired', expired],
        ['failed_retryable', failed],
        ['dead-lease', dead],
      ] as const) {
        const asked = atomicRequest(from)
        await transactor.transaction(async tx => {
          assert.deepEqual(await transactor.reserve(tx, asked), { kind: 'free', fence: old.fence, from })
          assert.equal(await transactor.record(tx, asked, answer('again'), old.fence), 'recorded')
          return 'commit'
        })
        const record = await recordOf(store, old.id)
        assert.deepEqual([record.state, record.claimId, record.expired], ['completed', asked.claimId, false])
        assertNextFence(store, old.fence, record.fence)
        assert.deepEqual(record.outcome && plain(record.outcome), plain(answer('again')))
        assert.equal(await store.complete(old, answer('stale'), retentionMs), 'claim-lost')
      }
    },
  },
  {
    name: 'says taken when the fence is not the reserved one, and the row stays',
    async run(harness) {
      const { store, transactor, business } = await open(harness)
      const done = await rowIn.completed(harness, store, 'done')
      const running = await own(store, 'running')
      for (const [key, claim] of [
        ['done', done],
        ['running', running],
      ] as const) {
        const end = await transactor.transaction(async tx => {
          // Reserved another identity and records this one.
          await transactor.reserve(tx, atomicRequest(`beside ${key}`))
          await business.insert(tx, 'must not stay')
          assert.equal(await transactor.record(tx, atomicRequest(key), answer('thief'), 0), 'taken')
          return 'rollback'
        })
        assert.deepEqual(end, { kind: 'rolled-back' })
        const record = await recordOf(store, claim.id)
        assert.deepEqual([record.fence, record.claimId], [claim.fence, claim.claimId])
      }
      assert.deepEqual(await business.values(), [])
    },
  },
]
