/** What is Redis's own: races over both clients, scripts that the server has forgotten, fences, times to live, and the shape of what is stored. */
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import type { Redis } from 'ioredis'
import { describeRedis } from '../../../../../test/servers/redis/describe-redis.ts'
import { clientKinds, type OpenClient, openIoredis } from '../../../test/redis/clients.ts'
import { everyCall } from '../../../test/redis/every-call.ts'
import { redisHarness, type RedisHarness } from '../../../test/redis/fixture.ts'
import { claimRequest, hourMs, outcome, own } from '../../../test/redis/requests.ts'
import type { RedisStore } from './store.ts'

describeRedis('the redis store', server => {
  let opened: OpenClient[]
  let outside: OpenClient & { readonly client: Redis }
  beforeAll(async () => {
    opened = await Promise.all(clientKinds.map(kind => kind.open(server.server.url)))
    outside = await openIoredis(server.server.url)
  })
  afterAll(() => Promise.all([...opened, outside].map(each => each.close())))

  /** One on each client, over the same keys. */
  async function both(): Promise<{ harness: RedisHarness; stores: readonly RedisStore[]; store: RedisStore }> {
    const [first] = opened
    if (first === undefined) throw new Error('there are two clients')
    const harness = redisHarness(first.client, outside.client)
    const stores = await Promise.all(opened.map(({ client }) => harness.open({ client })))
    return { harness, stores, store: stores[0] as RedisStore }
  }

  it('grants each of many identities once to fifty claims over two clients, new, failed or dead', async () => {
    const { harness, stores, store } = await both()
    const keys = Array.from({ length: 30 }, (_, n) => `race/${n}/`)
    for (const key of keys.slice(0, 10)) await own(store, key, { recovery: 'rerun', leaseMs: 1_000 })
    for (const key of keys.slice(10, 20)) {
      await store.fail(await own(store, key), { to: 'failed_retryable', errorCode: 'x', dueInMs: 0 })
    }
    await harness.advance(2_000)
    for (const key of keys) {
      const asked = Array.from({ length: 25 }, () => stores.map(each => each.claim(claimRequest(key))))
      const results = await Promise.all(asked.flat())
      expect(results.filter(({ kind }) => kind === 'won')).toHaveLength(1)
    }
  })

  it('loads its scripts again where the server has forgotten them, in the middle of a race', async () => {
    const { stores } = await both()
    for (const key of ['flushed 1', 'flushed 2', 'flushed 3']) {
      const asked = Array.from({ length: 10 }, () => stores.map(each => each.claim(claimRequest(key))))
      const [, ...results] = await Promise.allSettled([outside.client.script('FLUSH'), ...asked.flat()])
      expect(results.filter(({ status }) => status === 'rejected')).toEqual([])
      expect(results.filter(each => each.status === 'fulfilled' && each.value.kind === 'won')).toHaveLength(1)
    }
    await outside.client.script('FLUSH')
    const [store, other] = stores as [RedisStore, RedisStore]
    const claim = await own(store, 'flushed 4')
    await outside.client.script('FLUSH')
    expect(await other.complete(claim, outcome('done'), hourMs)).toBe('written')
  })

  it('has the same bytes back through the other client, none of them text', async () => {
    const { stores } = await both()
    const [store, other] = stores as [RedisStore, RedisStore]
    const body = Buffer.from(Array.from({ length: 900_000 }, (_, n) => (n * 7) % 256))
    for (const [writer, reader] of [
      [store, other],
      [other, store],
    ] as const) {
      const claim = await own(writer, `bytes ${writer === store}`)
      await writer.complete(claim, { ...outcome(''), body }, hourMs)
      const record = await reader.read(claim.id)
      expect(Buffer.compare(Buffer.from(record?.outcome?.body ?? []), body)).toBe(0)
    }
  })

  it('decides leases by the clock of the server', async () => {
    const { harness, store } = await both()
    await own(store, 'live', { recovery: 'rerun', leaseMs: 60_000 })
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + hourMs })
    try {
      const ahead = await harness.open()
      expect(await ahead.claim(claimRequest('live'))).toMatchObject({ kind: 'seen', record: { state: 'in_progress' } })
      expect(await ahead.sweep({ limit: 10 })).toEqual([])
    } finally {
      vi.useRealTimers()
    }
  })

  it('raises the fence of an identity over the loss of everything', async () => {
    const { store } = await both()
    const before = await own(store, 'lost')
    await outside.client.flushall()
    const after = await own(store, 'lost')
    expect(after.fence).toBeGreaterThan(before.fence)
    expect(await store.complete(before, outcome('before'), hourMs)).toBe('claim-lost')
    expect(await store.complete(after, outcome('after'), hourMs)).toBe('written')
  })

  it('raises the fence while the clock of the server stands behind what was granted', async () => {
    const { harness, store } = await both()
    const { id } = claimRequest('set back').identity
    const ahead = 2 ** 52
    await outside.client.set(harness.keyOf(id, 'floor'), ahead)
    expect((await own(store, 'set back')).fence).toBe(ahead + 1)
  })

  it('lets the server remove what is finished an hour after its time, and nothing that is not', async () => {
    const { harness, store } = await both()
    const claim = await own(store, 'ttl', { tombstoneMs: 5 * hourMs })
    const ttl = () => outside.client.pttl(harness.keyOf(claim.id, 'row'))
    expect(await ttl()).toBe(-1)
    await store.complete(claim, outcome('done'), hourMs)
    const expected = (24 + 5 + 1) * hourMs
    expect(await ttl()).toBeLessThanOrEqual(expected)
    expect(await ttl()).toBeGreaterThan(expected - 60_000)
    const failed = await own(store, 'ttl of a failed one')
    await store.fail(failed, { to: 'failed_retryable', errorCode: 'x', dueInMs: 0 })
    expect(await outside.client.pttl(harness.keyOf(failed.id, 'row'))).toBeGreaterThan(24 * hourMs)
    await own(store, 'ttl of a failed one')
    expect(await outside.client.pttl(harness.keyOf(failed.id, 'row'))).toBe(-1)
  })

  it('cleans up after a row that the server removed by itself', async () => {
    const { harness, store } = await both()
    const claim = await own(store, 'removed')
    await store.complete(claim, outcome('done'), hourMs)
    await outside.client.del(harness.keyOf(claim.id, 'row'))
    await harness.advance(25 * hourMs)
    expect(await store.reap({ limit: 10 })).toBe(0)
    expect(await outside.client.zcard(harness.keyOf(claim.id, 'expiries'))).toBe(0)
    expect((await store.list({ limit: 10 })).records).toEqual([])
  })

  it('leaves nothing for ever of a row that was forgotten or evicted', async () => {
    const { harness, store } = await both()
    const unknown = { to: 'unknown', errorCode: 'x', dueInMs: 0 } as const
    const act = { by: 'a test', reason: 'it was wrong' }
    const late = await own(store, 'late')
    await store.fail(late, unknown)
    await store.complete(late, outcome('late'), hourMs)
    const evidence = harness.keyOf(late.id, 'evidence')
    expect(await outside.client.pttl(evidence)).toBe(-1)
    await store.forget(late.id, act)
    expect(await outside.client.pttl(evidence)).toBeGreaterThan(29 * 24 * hourMs)

    const foreign = await own(store, 'of another format')
    const evicted = await own(store, 'evicted')
    for (const claim of [foreign, evicted]) await store.fail(claim, unknown)
    expect(await store.reconciliation.unknowns()).toMatchObject([{ count: 2, parked: 0 }])
    await outside.client.set(harness.keyOf(foreign.id, 'row'), Buffer.from([2, 2, 0, 1]))
    expect(await store.forget(foreign.id, act)).toEqual({ kind: 'forgotten' })
    await outside.client.del(harness.keyOf(evicted.id, 'row'))
    await harness.advance(25 * hourMs)
    await store.reap({ limit: 10 })
    expect(await store.reconciliation.unknowns()).toEqual([])
    // Audits are kept, the evidence for a month, and the fences of the buckets for good.
    const left = (await outside.client.keys(`${harness.prefix}:{*`)).map(key => key.split(':')[2] ?? '')
    expect(left.toSorted()).toEqual(['a', 'a', 'f', 'f', 'f', 'v'])
  })

  it('leaves a row of a later format due for those who can read it', async () => {
    const { harness, store } = await both()
    const dead = await own(store, 'dead', { recovery: 'rerun', leaseMs: 0 })
    const unknown = await own(store, 'unknown')
    await store.fail(unknown, { to: 'unknown', errorCode: 'x', dueInMs: 0 })
    const format = async (number: number) => {
      for (const { id } of [dead, unknown])
        await outside.client.setrange(harness.keyOf(id, 'row'), 0, Buffer.from([number]))
    }
    const lookups = async () => {
      const options = { operation: 'payments.create', firstInMs: 0, leaseMs: 1_000, limit: 10 }
      return (await store.reconciliation.lookups(options)).map(({ id }) => id)
    }
    await format(2)
    expect(await store.sweep({ limit: 10 })).toEqual([])
    expect(await lookups()).toEqual([])
    await format(1)
    expect(await store.sweep({ limit: 10 })).toMatchObject([{ id: dead.id, to: 'failed_retryable' }])
    expect(await lookups()).toEqual([unknown.id])
  })

  it('keeps a finished identity with 170 bytes of body in one key of 480 bytes', async () => {
    const { harness, store } = await both()
    const claim = await own(store, 'small')
    await store.complete(claim, outcome('x'.repeat(170)), hourMs)
    const row = harness.keyOf(claim.id, 'row')
    expect(await outside.client.call('MEMORY', 'USAGE', row)).toBeLessThanOrEqual(480)
  })

  it('sends the calls of one turn in one write', async () => {
    const { stores } = await both()
    const reads = async () => Number(/total_reads_processed:(\d+)/.exec(await outside.client.info('stats'))?.[1])
    for (const [n, store] of stores.entries()) {
      await own(store, `warm ${n}`)
      const before = await reads()
      await Promise.all(Array.from({ length: 20 }, (_, key) => store.read(claimRequest(`turn ${key}`).identity.id)))
      // The look itself is one.
      expect((await reads()) - before).toBeLessThanOrEqual(3)
    }
  })

  it('decides the calls of one turn by one script, each for itself', async () => {
    const { stores } = await both()
    const scripts = async () =>
      Number(/cmdstat_evalsha:calls=(\d+)/.exec(await outside.client.info('commandstats'))?.[1])
    for (const [n, store] of stores.entries()) {
      const done = await own(store, `shared ${n} done`)
      expect(await store.complete(done, outcome('done'), hourMs)).toBe('written')
      await own(store, `shared ${n} held`)
      const dead = await own(store, `shared ${n} dead`, { recovery: 'rerun', leaseMs: 0 })
      const names = ['new', 'new', 'done', 'held']
      const before = await scripts()
      const results = await Promise.all(names.map(name => store.claim(claimRequest(`shared ${n} ${name}`))))
      expect(results.map(result => (result.kind === 'won' ? 'won' : result.record.state))).toEqual([
        'won',
        'in_progress',
        'completed',
        'in_progress',
      ])
      expect((await scripts()) - before).toBe(1)
      // Who has to decide about a row that may be granted is another script.
      expect(await store.claim(claimRequest(`shared ${n} dead`))).toMatchObject({ kind: 'won', from: 'dead-lease' })
      const late = store.complete(dead, outcome('late'), hourMs)
      const [won] = results
      const written = won?.kind === 'won' ? store.complete(won.claim, outcome('new'), hourMs) : undefined
      expect(await Promise.all([late, written])).toEqual(['claim-lost', 'written'])
    }
  })

  it('decides the other calls of a turn where one key holds something else', async () => {
    const { harness, store } = await both()
    const { id } = claimRequest('foreign').identity
    await outside.client.rpush(harness.keyOf(id, 'row'), 'a list')
    const [foreign, ...others] = await Promise.allSettled(
      ['foreign', 'beside 1', 'beside 2'].map(key => store.claim(claimRequest(key))),
    )
    expect(foreign).toMatchObject({ status: 'rejected', reason: { code: 'store-unavailable' } })
    expect(others).toMatchObject([{ value: { kind: 'won' } }, { value: { kind: 'won' } }])
  })

  it('answers a turn of large replays in parts', async () => {
    const { store } = await both()
    const keys = ['large 1', 'large 2', 'large 3']
    const body = Buffer.alloc(600_000, 'x')
    for (const key of keys) await store.complete(await own(store, key), { ...outcome(''), body }, hourMs)
    for (const result of await Promise.all(keys.map(key => store.claim(claimRequest(key))))) {
      expect(result).toMatchObject({ kind: 'seen', record: { state: 'completed' } })
      expect(result.kind === 'seen' && result.record.outcome?.body?.length).toBe(body.length)
    }
  })

  it('takes a row of another format, or one that is cut off, for one that it cannot read', async () => {
    const { harness, store } = await both()
    for (const [name, spoilt] of [
      ['format', Buffer.from([2, 2, 0, 1])],
      ['cut', undefined],
    ] as const) {
      const claim = await own(store, name)
      await store.complete(claim, outcome('done'), hourMs)
      const row = harness.keyOf(claim.id, 'row')
      const whole = await outside.client.getBuffer(row)
      await outside.client.set(row, spoilt ?? (whole?.subarray(0, 80) as Buffer))
      expect(await store.claim(claimRequest(name))).toMatchObject({ kind: 'seen', record: { state: 'unreadable' } })
      expect(await store.read(claim.id)).toMatchObject({ state: 'unreadable' })
      expect(await store.complete(claim, outcome('again'), hourMs)).toBe('claim-lost')
      expect(await store.forget(claim.id, { by: 'a test', reason: 'unreadable' })).toEqual({ kind: 'forgotten' })
      expect((await store.claim(claimRequest(name))).kind).toBe('won')
    }
  })

  it('needs no more rights than the guide lists', async () => {
    const { harness } = await both()
    const guide = readFileSync(new URL('../../../../../docs/guides/redis.md', import.meta.url), 'utf8')
    const rights = /~lk:\* (\+[^\n]+)/.exec(guide)?.[1]?.split(' ') ?? []
    await outside.client.acl('SETUSER', 'least', 'on', '>secret', `~${harness.prefix}:*`, ...rights)
    const url = new URL(server.server.url)
    url.username = 'least'
    url.password = 'secret'
    for (const kind of clientKinds) {
      const limited = await kind.open(url.href)
      await everyCall(await harness.open({ client: limited.client }), kind.name)
      await limited.close()
    }
  })
})
