/** What is answered from the cache, what is not, and what takes it out again. */
import type { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { fakeClock } from '../../../test/engine/fake-clock.ts'
import { describeRedis } from '../../../../../test/servers/redis/describe-redis.ts'
import { clientKinds, type OpenClient, openIoredis } from '../../../test/redis/clients.ts'
import { claimRequest, hourMs, outcome, own } from '../../../test/redis/requests.ts'
import {
  act,
  bodyOf,
  cached,
  finish,
  inFront,
  keyIn,
  ownPrefix,
  patientlyInFront,
  pause,
  replay,
  timeless,
  waitFor,
  watchedStore,
} from '../../../test/tiered/fixture.ts'
import type { StoredOutcome, Values } from '../../ports/faculties/values.ts'
import { senderOf } from '../shared/redis/sender.ts'
import { periodMs } from './cache/periods.ts'
import { openTier } from './cache/tier.ts'
import { withTier } from './store.ts'

for (const kind of clientKinds) {
  describeRedis(`a cache in front, by ${kind.name}`, server => {
    let opened: OpenClient
    let outside: OpenClient & { readonly client: Redis }
    beforeAll(async () => {
      opened = await kind.open(server.server.url)
      outside = await openIoredis(server.server.url)
    })
    afterAll(() => Promise.all([opened.close(), outside.close()]))

    function open() {
      const below = watchedStore()
      const prefix = ownPrefix()
      return { below, prefix, tiered: patientlyInFront(opened.client, below.store, { prefix }) }
    }

    it('answers a replay as the store does, and asks the store once', async () => {
      const { below, tiered } = open()
      const { id } = await cached(tiered, below.store, 'k')
      const asked = below.claims()
      const { hits } = tiered.cacheFigures()
      for (const _ of [1, 2, 3]) {
        const record = await replay(tiered, 'k')
        const row = await below.store.read(id)
        expect(timeless(record)).toEqual(row && timeless(row))
        expect(bodyOf(record)).toBe('answer to k')
      }
      expect(below.claims()).toBe(asked)
      expect(tiered.cacheFigures()).toMatchObject({ hits: hits + 3, fills: 1, failures: 0 })
    })

    it('answers with the fingerprint of the row, so that another request is found out', async () => {
      const { below, tiered } = open()
      await cached(tiered, below.store, 'k')
      const asked = below.claims()
      const record = await replay(tiered, 'k', { fingerprint: Buffer.alloc(27, 'v2 other') })
      expect(Buffer.from(record.fingerprint)).toEqual(claimRequest('k').fingerprint)
      expect(below.claims()).toBe(asked)
    })

    it('stores no row that is not completed', async () => {
      const { below, prefix, tiered } = open()
      await own(below.store, 'running')
      const failed = await own(below.store, 'failed')
      await below.store.fail(failed, { to: 'failed_retryable', errorCode: 'x', dueInMs: hourMs })
      await below.store.fail(await own(below.store, 'unknown'), { to: 'unknown', errorCode: 'x', dueInMs: 0 })
      for (const key of ['running', 'failed', 'unknown']) {
        expect((await replay(tiered, key)).state).not.toBe('completed')
        expect((await tiered.claim(claimRequest(key))).kind).toBe('seen')
        expect((await outside.client.get(keyIn(prefix, key)))?.[0]).toBe('t')
      }
      expect(tiered.cacheFigures()).toMatchObject({ hits: 0, fills: 0 })
    })

    it('grants through the store only, and gives the row to one of many', async () => {
      const { below, tiered } = open()
      const results = await Promise.all(Array.from({ length: 50 }, () => tiered.claim(claimRequest('new'))))
      expect(results.filter(({ kind: result }) => result === 'won')).toHaveLength(1)
      expect(below.claims()).toBe(50)
    })

    it('asks the store once for many requests at once, if the row is completed', async () => {
      const { below, tiered } = open()
      await finish(below.store, 'hot')
      const before = below.claims()
      const records = await Promise.all(Array.from({ length: 200 }, () => replay(tiered, 'hot')))
      expect(new Set(records.map(bodyOf))).toEqual(new Set(['answer to hot']))
      expect(below.claims() - before).toBe(1)
      const [first, second] = records
      first?.outcome?.body?.fill(0)
      expect(second && bodyOf(second)).toBe('answer to hot')
    })

    it('lets nobody wait for a request that the store lets wait', async () => {
      const { below, prefix } = open()
      const tiered = inFront(opened.client, below.store, prefix)
      await finish(below.store, 'k')
      const before = below.claims()
      const release = below.hold()
      const asked = [replay(tiered, 'k')]
      await waitFor(() => below.claims() === before + 1)
      asked.push(replay(tiered, 'k'), replay(tiered, 'k'))
      await waitFor(() => below.claims() === before + 3)
      release()
      expect((await Promise.all(asked)).map(bodyOf)).toEqual(['answer to k', 'answer to k', 'answer to k'])
    })

    it('gives each caller bytes of its own', async () => {
      const { below, tiered } = open()
      await cached(tiered, below.store, 'k')
      for (const _ of [1, 2, 3]) {
        const record = await replay(tiered, 'k')
        expect(bodyOf(record)).toBe('answer to k')
        record.outcome?.body?.fill(0)
      }
    })

    it('leaves operations alone that were not chosen', async () => {
      const { below, prefix, tiered } = open()
      const other = { identity: { ...claimRequest('k').identity, operation: 'refunds.create' } }
      await finish(below.store, 'k', other)
      for (const _ of [1, 2]) await replay(tiered, 'k', other)
      expect(tiered.cacheFigures()).toMatchObject({ hits: 0, misses: 0 })
      expect(await outside.client.keys(`${prefix}:*`)).toEqual([])
    })

    it('forgets a row in the cache and in the memory of every process before it returns', async () => {
      const { below, prefix, tiered } = open()
      const other = patientlyInFront(opened.client, below.store, { prefix })
      const { id } = await cached(tiered, below.store, 'k')
      await waitFor(async () => {
        // A period has just begun when it is forgotten.
        await pause(periodMs)
        for (const _ of [1, 2]) await replay(other, 'k')
        return other.cacheFigures().localHits > 0
      })
      expect(await tiered.forget(id, act)).toEqual({ kind: 'forgotten' })
      expect((await other.claim(claimRequest('k'))).kind).toBe('won')
    })

    it('answers from the memory of the process until the period ends', async () => {
      const { below, prefix, tiered } = open()
      await cached(tiered, below.store, 'k')
      const clock = fakeClock()
      const tier = openTier({ sender: senderOf(opened.client), covers: () => true, prefix, heldMs: 0, clock })
      const frozen = withTier(below.store, tier, clock)
      await replay(frozen, 'k')
      await outside.client.del(keyIn(prefix, 'k'))
      expect(bodyOf(await replay(frozen, 'k'))).toBe('answer to k')
      expect(await frozen.read(claimRequest('k').identity.id)).toMatchObject({ state: 'completed' })
      expect(tier.figures).toMatchObject({ hits: 3, localHits: 2 })
      clock.advance(periodMs)
      await replay(frozen, 'k')
      expect(tier.figures).toMatchObject({ hits: 3, misses: 1 })
    })

    /** `during`: called when the store is about to forget a row. */
    function openWith(during: () => Promise<unknown>) {
      const { below, prefix } = open()
      const { forget } = below.store
      const store: typeof below.store = {
        ...below.store,
        async forget(id, given) {
          await during()
          return forget(id, given)
        },
      }
      return { store, prefix, tiered: patientlyInFront(opened.client, store, { prefix }) }
    }

    it.each([false, true])(
      'has no row in the cache while the store forgets it (flushed meanwhile: %s)',
      async flushed => {
        let during: string | null | undefined
        const { store, prefix, tiered } = openWith(async () => {
          during = await outside.client.get(keyIn(prefix, 'k'))
        })
        const { id } = await cached(tiered, store, 'k')
        const forgetting = tiered.forget(id, act)
        await pause(100)
        if (flushed) await outside.client.flushall()
        expect(await forgetting).toEqual({ kind: 'forgotten' })
        expect(during?.[0]).toBe('x')
      },
    )

    it('waits for the memory of every process once more, where the cache lost the tombstone at the last moment', async () => {
      const { store, prefix, tiered } = openWith(async () => {
        await outside.client.flushall()
        await pause(periodMs)
        await waitFor(async () => {
          await replay(other, 'k')
          await pause(20)
          return other.cacheFigures().localHits > 0
        })
      })
      const other = patientlyInFront(opened.client, store, { prefix })
      const { id } = await cached(tiered, store, 'k')
      expect(await tiered.forget(id, act)).toEqual({ kind: 'forgotten' })
      expect((await other.claim(claimRequest('k'))).kind).toBe('won')
    })

    it('stores no answer that was read before a forget', async () => {
      const { below, prefix, tiered } = open()
      const { id } = await finish(below.store, 'k')
      const release = below.hold()
      const slow = replay(tiered, 'k')
      await waitFor(async () => (await outside.client.exists(keyIn(prefix, 'k'))) === 1)
      await tiered.forget(id, act)
      release()
      expect(bodyOf(await slow)).toBe('answer to k')
      await pause(50)
      expect((await outside.client.get(keyIn(prefix, 'k')))?.[0]).toBe('x')
      expect((await tiered.claim(claimRequest('k'))).kind).toBe('won')
    })

    it.each(['FLUSHALL', 'DEL'] as const)('stores no answer whose ticket was lost by %s', async how => {
      const { below, prefix, tiered } = open()
      await finish(below.store, 'k')
      const release = below.hold()
      const slow = replay(tiered, 'k')
      await waitFor(async () => (await outside.client.exists(keyIn(prefix, 'k'))) === 1)
      await (how === 'DEL' ? outside.client.del(keyIn(prefix, 'k')) : outside.client.flushall())
      release()
      await slow
      await pause(50)
      expect(await outside.client.exists(keyIn(prefix, 'k'))).toBe(0)
      expect(tiered.cacheFigures().fills).toBe(0)
    })

    it('stores an answer for less time than the store keeps it, and ten minutes at most', async () => {
      const { below, prefix, tiered } = open()
      const claim = await own(below.store, 'short', { expiresInMs: 1_000 })
      await below.store.complete(claim, outcome('short'), 5_000)
      const fills = () => tiered.cacheFigures().fills
      await replay(tiered, 'short')
      await waitFor(() => fills() === 1)
      const leftMs = await outside.client.pttl(keyIn(prefix, 'short'))
      expect(leftMs).toBeGreaterThan(3_000)
      expect(leftMs).toBeLessThanOrEqual(4_000)
      await cached(tiered, below.store, 'long')
      expect(await outside.client.pttl(keyIn(prefix, 'long'))).toBeLessThanOrEqual(600_000)
    })

    it('stores no answer whose time is nearly over', async () => {
      const { below, tiered } = open()
      const claim = await own(below.store, 'over', { expiresInMs: 100 })
      await below.store.complete(claim, outcome('over'), 900)
      expect(bodyOf(await replay(tiered, 'over'))).toBe('over')
      await pause(50)
      expect(tiered.cacheFigures().fills).toBe(0)
    })

    it('does not use an entry that has more time left than it was given', async () => {
      const { below, prefix, tiered } = open()
      await cached(tiered, below.store, 'k')
      await outside.client.pexpire(keyIn(prefix, 'k'), hourMs)
      const before = below.claims()
      await replay(tiered, 'k')
      expect(below.claims()).toBe(before + 1)
      expect(tiered.cacheFigures().hits).toBe(0)
    })

    it.each([
      ['nothing', Buffer.alloc(0)],
      ['text', Buffer.from('hello')],
      ['an entry of another format', Buffer.from([2, 1, 1, 1])],
      ['an entry that is cut', Buffer.alloc(50, 1)],
    ])('asks the store where the cache has %s', async (_, bytes) => {
      const { below, prefix, tiered } = open()
      await finish(below.store, 'k')
      await outside.client.set(keyIn(prefix, 'k'), bytes, 'PX', 60_000)
      expect(bodyOf(await replay(tiered, 'k'))).toBe('answer to k')
      expect((await tiered.claim(claimRequest('k'))).kind).toBe('seen')
      expect(tiered.cacheFigures().hits).toBe(0)
    })

    it('asks the store where the entry of another row was copied to this one, or a byte is wrong', async () => {
      const { below, prefix, tiered } = open()
      await cached(tiered, below.store, 'a')
      await finish(below.store, 'b')
      const entry = await outside.client.getBuffer(keyIn(prefix, 'a'))
      if (entry === null) throw new Error('it was stored')
      await outside.client.set(keyIn(prefix, 'b'), entry, 'PX', 300_000)
      expect(bodyOf(await replay(tiered, 'b'))).toBe('answer to b')
      entry[entry.length - 1] = (entry.at(-1) ?? 0) ^ 1
      await outside.client.set(keyIn(prefix, 'a'), entry, 'PX', 300_000)
      expect(bodyOf(await replay(tiered, 'a'))).toBe('answer to a')
      expect(tiered.cacheFigures().hits).toBe(0)
    })

    it('uses nothing from before a flush, in any process', async () => {
      const { below, prefix, tiered } = open()
      const other = patientlyInFront(opened.client, below.store, { prefix })
      await cached(tiered, below.store, 'k')
      await replay(other, 'k')
      await tiered.flushCache()
      const before = below.claims()
      await replay(other, 'k')
      expect(below.claims()).toBe(before + 1)
    })

    it('stores nothing of a tenant that was erased, and uses nothing of it', async () => {
      const { below, tiered } = open()
      const open2 = await own(below.store, 'open')
      await cached(tiered, below.store, 'done')
      await tiered.erasure.mark('tenant')
      expect((await tiered.erasure.erase({ scope: 'tenant', limit: 10 })).rows).toBe(1)
      // It began before the mark: it goes when it has ended.
      await below.store.complete(open2, outcome('late'), hourMs)
      expect(bodyOf(await replay(tiered, 'open'))).toBe('late')
      await pause(50)
      await tiered.reap({ limit: 10 })
      expect((await tiered.claim(claimRequest('open'))).kind).toBe('won')
      expect((await tiered.claim(claimRequest('done'))).kind).toBe('won')
    })

    it('does not have a value in the cache that was replaced in the store', async () => {
      const { below, tiered } = open()
      await cached(tiered, below.store, 'k')
      const before = await storedOutcome(tiered.values)
      const after = { ...before, outcome: { ...before.outcome, body: Buffer.from('under another key') } }
      expect(await tiered.values.replace(before, after)).toBe('replaced')
      // A process that has met it may remember it until its period ends.
      await waitFor(async () => bodyOf(await replay(tiered, 'k')) === 'under another key')
    })

    describe('held rows', () => {
      it('are refused from the cache for a while by choice, with what is left of the lease', async () => {
        const { below } = open()
        const tiered = patientlyInFront(opened.client, below.store, { heldMs: 1_000 })
        await own(below.store, 'running', { leaseMs: 60_000 })
        await replay(tiered, 'running')
        await waitFor(() => tiered.cacheFigures().fills === 1)
        const asked = below.claims()
        const record = await replay(tiered, 'running', { fingerprint: Buffer.alloc(27, 'v2 other') })
        expect(record).toMatchObject({ state: 'in_progress', attempts: 1, outcome: undefined })
        expect(record.leaseLeftMs).toBeGreaterThan(55_000)
        expect(record.leaseLeftMs).toBeLessThan(60_000)
        expect(Buffer.from(record.fingerprint)).toEqual(claimRequest('running').fingerprint)
        expect(below.claims()).toBe(asked)
      })

      it('are never held longer than their lease', async () => {
        const { below } = open()
        const tiered = patientlyInFront(opened.client, below.store, { heldMs: 5_000 })
        await own(below.store, 'short', { leaseMs: 400, recovery: 'rerun' })
        await replay(tiered, 'short')
        await waitFor(() => tiered.cacheFigures().fills === 1)
        expect((await tiered.claim(claimRequest('short'))).kind).toBe('seen')
        const leftMs = async () => (await below.store.read(claimRequest('short').identity.id))?.leaseLeftMs ?? 0
        await waitFor(async () => (await leftMs()) <= 0)
        expect((await tiered.claim(claimRequest('short'))).kind).toBe('won')
      })
    })
  })
}

async function storedOutcome(values: Values): Promise<StoredOutcome> {
  for (let after: string | undefined; ;) {
    const page = await values.page({ limit: 10, after })
    const found = page.values.find(value => value.kind === 'outcome')
    if (found !== undefined) return found
    after = page.next
    if (after === undefined) throw new Error('there is an outcome')
  }
}
