/** The store conformance harness over a Redis server: a prefix for each case, and a clock that a key of the case puts forward. */
import type { Damage, SpoilableHarness } from '@latchkey/conformance'
import type { Redis } from 'ioredis'
import { outcomePlace } from '../../../../test/servers/redis/scan-rows.ts'
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

  async function spoil(id: string, change: (row: Buffer) => Buffer): Promise<void> {
    const row = await outside.getBuffer(keyOf(id, 'row'))
    if (row === null) throw new Error(`${id} has no row to spoil`)
    await outside.set(keyOf(id, 'row'), change(row))
  }

  const spoilByte = (id: string, at: number, value: number) =>
    outside.setrange(keyOf(id, 'row'), at, Buffer.from([value]))

  const spoilOutcome = (id: string, change: (outcome: Buffer) => Buffer) =>
    spoil(id, row => Buffer.concat([row.subarray(0, outcomePlace(row)), change(row.subarray(outcomePlace(row)))]))

  const spoilers: Readonly<Record<Damage, (id: string) => Promise<unknown>>> = {
    state: id => spoilByte(id, 1, 7),
    recovery: id => spoilByte(id, 2, 9),
    'outcome-format': id => spoilOutcome(id, packed => Buffer.concat([Buffer.from([0xf0]), packed.subarray(1)])),
    'outcome-cut': id => spoilOutcome(id, packed => packed.subarray(0, 2)),
    'outcome-headers': id => spoilOutcome(id, withBadHeaders),
    'outcome-missing': id => spoilOutcome(id, () => Buffer.alloc(0)),
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
