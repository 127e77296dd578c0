/** The store conformance harness over a Redis server: a prefix for each case, and a clock that a key of the case puts forward. */
import type { Damage, SpoilableHarness } from '@latchkey/conformance'
import type { Redis } from 'ioredis'
import { hexOf, keysOf, type Part } from '../../src/stores/redis/connection/layout.ts'
import type { RedisClient } from '../../src/stores/shared/redis/driver.ts'
import { openRedisStore, type RedisStore, type RedisStoreOptions } from '../../src/stores/redis/store.ts'

let prefixes = 0

export interface RedisHarness extends SpoilableHarness {
  readonly prefix: string
  open(options?: Partial<RedisStoreOptions>): Promise<RedisStore>
  keyOf(id: string, part: Part): string
}

/** Headers as JSON, which are no list. `at`: where they begin, behind the fence. */
const badHeaders = Buffer.from('no list')

export function redisHarness(client: RedisClient, outside: Redis): RedisHarness {
  prefixes += 1
  const prefix = `case-${process.pid}-${prefixes}`
  const forward = `${prefix}:forward`
  const keyOf = (id: string, part: Part) => keysOf(prefix, hexOf(id), [part])[0] ?? ''

  async function spoilOutcome(id: string, change: (packed: Buffer) => Buffer): Promise<void> {
    const packed = await outside.getBuffer(keyOf(id, 'outcome'))
    if (packed === null) throw new Error(`${id} has no outcome to spoil`)
    await outside.set(keyOf(id, 'outcome'), change(packed))
  }

  const spoilers: Readonly<Record<Damage, (id: string) => Promise<unknown>>> = {
    state: id => outside.hset(keyOf(id, 'row'), 's', 7),
    recovery: id => outside.hset(keyOf(id, 'row'), 'r', 9),
    'outcome-format': id => spoilOutcome(id, packed => Buffer.concat([Buffer.from([0xf0]), packed.subarray(1)])),
    'outcome-cut': id => spoilOutcome(id, packed => packed.subarray(0, 2)),
    'outcome-headers': id => spoilOutcome(id, withBadHeaders),
    'outcome-missing': id => outside.del(keyOf(id, 'outcome')),
    step: id => outside.eval(spoilStep, 1, keyOf(id, 'journal')),
  }

  return {
    prefix,
    keyOf,
    open: async (options = {}) =>
      openRedisStore({ client, prefix, forwardMs: `(redis.call('GET', '${forward}') or 0)`, ...options }),
    advance: async ms => void (await outside.incrby(forward, ms)),
    spoil: async (id, damage) => void (await spoilers[damage](id)),
    close: async () => {},
  }
}

const spoilStep = `
local step = cmsgpack.unpack(redis.call('HGET', KEYS[1], 's0'))
step.s = 7
redis.call('HSET', KEYS[1], 's0', cmsgpack.pack(step))`

/** Flags, status, fence and version stay: the fence is a varint of eight bytes, the version one byte. */
function withBadHeaders(packed: Buffer): Buffer {
  const fenceEnd = packed.findIndex((byte, at) => at > 2 && byte < 0x80) + 1
  const head = packed.subarray(0, fenceEnd + 1)
  const flags = Buffer.from([0x12])
  return Buffer.concat([flags, head.subarray(1), Buffer.from([badHeaders.length]), badHeaders])
}
