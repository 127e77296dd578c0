/** Any harness of a store, with the cache in front of its store: what the port promises, the tiered store promises. Every replay is asked for again, until it comes from the cache. */
import assert from 'node:assert/strict'
import { isDeepStrictEqual } from 'node:util'
import type { Damage, StoreHarness } from '@latchkey/conformance'
import type { Redis } from 'ioredis'
import { until } from '../../../../test/servers/processes.ts'
import type { ClaimResult, Store } from '../../src/ports/store.ts'
import type { RedisClient } from '../../src/stores/shared/redis/driver.ts'
import { senderOf } from '../../src/stores/shared/redis/sender.ts'
import { openTier, type Tier } from '../../src/stores/tiered/cache/tier.ts'
import { withTier } from '../../src/stores/tiered/store.ts'
import { leapingClock } from '../engine/fake-clock.ts'
import { timeless } from './fixture.ts'

export interface Cached {
  /** How many replays came from the cache, and agreed with the database. */
  hits: number
}

export interface CacheServer {
  readonly client: RedisClient
  /** Another connection, to look at the cache and to change it. */
  readonly outside: Redis
  readonly cached: Cached
}

let prefixes = 0

export async function tieredHarness<H extends StoreHarness>(harness: H | Promise<H>, server: CacheServer): Promise<H> {
  const below = await harness
  const { client, outside, cached } = server
  prefixes += 1
  const prefix = `case-${process.pid}-${prefixes}`
  const clock = impatientClock()
  const tiers: Tier[] = []
  const spoil: unknown = Reflect.get(below, 'spoil')
  return {
    ...below,
    async open() {
      const tier = openTier({ sender: senderOf(client), covers: () => true, prefix, heldMs: 0, clock })
      tiers.push(tier)
      const store = withTier(await below.open(), tier, clock)
      return { ...store, claim: request => askedUntilCached({ store, tier, cached, outside, prefix }, request) }
    },
    async advance(ms: number) {
      await below.advance(ms)
      clock.leap(ms)
      await age(outside, prefix, ms)
    },
    ...(typeof spoil === 'function' && {
      // Who changes the database without the cache flushes it.
      async spoil(id: string, damage: Damage) {
        await spoil.call(below, id, damage)
        await Promise.all(tiers.map(tier => tier.flush()))
      },
    }),
  }
}

/** A wait for the end of every period is leapt over, in all handles: there may be hundreds. Limits of calls, which are shorter, are not. */
function impatientClock(): ReturnType<typeof leapingClock> {
  const clock = leapingClock()
  const { after } = clock
  return {
    ...clock,
    after(delayMs, run) {
      if (delayMs <= 500) return after(delayMs, run)
      clock.leap(delayMs)
      return after(0, run)
    },
  }
}

interface Asked {
  readonly store: Store
  readonly tier: Tier
  readonly cached: Cached
  readonly outside: Redis
  readonly prefix: string
}

async function askedUntilCached(asked: Asked, request: Parameters<Store['claim']>[0]): Promise<ClaimResult> {
  const { store, tier, cached, outside, prefix } = asked
  const first = await store.claim(request)
  if (!isReplay(first)) return first
  const { id } = request.identity
  const key = `${prefix}:${id}`
  await outside.eval(
    `if (redis.call('GET', KEYS[1]) or ''):sub(1, 1) == 't' then redis.call('DEL', KEYS[1]) end`,
    1,
    key,
  )
  const { hits } = tier.figures
  const filled = await store.claim(request)
  // Not stored: it is past its time soon, or large, or its tenant was erased.
  await until(async () => tier.figures.hits > hits || (await outside.get(key))?.startsWith('t') !== true, 100)
  const again = await store.claim(request)
  for (const result of [filled, again]) {
    assert.ok(isReplay(result), `${result.kind} after a replay`)
    assert.ok(isDeepStrictEqual(timeless(result.record), timeless(first.record)), 'the cache has another row')
  }
  cached.hits += tier.figures.hits - hits
  return again
}

function isReplay(result: ClaimResult): result is Extract<ClaimResult, { kind: 'seen' }> {
  return result.kind === 'seen' && result.record.state === 'completed' && !result.record.expired && !result.record.gone
}

/** Time passes for the server as well. */
async function age(outside: Redis, prefix: string, ms: number): Promise<void> {
  for (const key of await outside.keys(`${prefix}:*`)) {
    const leftMs = await outside.pttl(key)
    if (leftMs === -1) continue
    if (leftMs > ms) await outside.pexpire(key, Math.floor(leftMs - ms))
    else await outside.del(key)
  }
}
