/** A cache on a real server, in front of a store whose calls are counted and can be held back. */
import { type Clock, systemClock } from '../../src/ports/clock.ts'
import type { Claim, ClaimRequest, KeyRecord, ReadableRecord, Store } from '../../src/ports/store.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'
import type { RedisClient } from '../../src/stores/shared/redis/driver.ts'
import { senderOf } from '../../src/stores/shared/redis/sender.ts'
import { periodMs } from '../../src/stores/tiered/cache/periods.ts'
import { openTier } from '../../src/stores/tiered/cache/tier.ts'
import { type Tiered, tieredStore } from '../../src/stores/tiered/index.ts'
import { withTier } from '../../src/stores/tiered/store.ts'
import { claimRequest, hourMs, outcome, own } from '../redis/requests.ts'

export const act = { by: 'a test', reason: 'it was wrong' } as const
export const operations = ['payments.create']

export interface Watched {
  readonly store: ReturnType<typeof memoryStore>
  /** Claims that reached it. */
  readonly claims: () => number
  /** From now on the answer to a claim is held back until the returned function is called. */
  hold(): () => void
}

export function watchedStore(): Watched {
  const store = memoryStore()
  let claims = 0
  let gate = Promise.resolve()
  return {
    claims: () => claims,
    hold() {
      let release = () => {}
      gate = new Promise(resolve => {
        release = resolve
      })
      return release
    },
    store: {
      ...store,
      async claim(request) {
        claims += 1
        const result = await store.claim(request)
        await gate
        return result
      },
    },
  }
}

let prefixes = 0
export const ownPrefix = () => `test-${process.pid}-${(prefixes += 1)}`

export type TieredMemory = Watched['store'] & Tiered

export function inFront(cache: RedisClient, store: Watched['store'], prefix: string): TieredMemory {
  return tieredStore({ prefix, store, cache, operations })
}

/** As `tieredStore` makes it, but it waits longer for the cache, and for other requests: on a busy machine 50 ms are soon over. */
export function patientlyInFront(
  client: RedisClient,
  store: Watched['store'],
  { prefix = ownPrefix(), heldMs = 0 }: { readonly prefix?: string; readonly heldMs?: number } = {},
): TieredMemory {
  const after: Clock['after'] = (delayMs, run) => systemClock.after(delayMs <= periodMs ? 10_000 : delayMs, run)
  const clock = { ...systemClock, after }
  const covers = (operation: string) => operations.includes(operation)
  const tier = openTier({ sender: senderOf(client), covers, prefix, heldMs, clock })
  return {
    ...withTier(store, tier, clock),
    cacheFigures: () => tier.figures,
    flushCache: () => tier.flush(),
  }
}

/** A finished row, of which the cache knows nothing. */
export async function finish(store: Store, key: string, over: Partial<ClaimRequest> = {}): Promise<Claim> {
  const claim = await own(store, key, over)
  await store.complete(claim, outcome(`answer to ${key}`), hourMs)
  return claim
}

/** A finished row that is in the cache. */
export async function cached(tiered: TieredMemory, below: Store, key: string): Promise<Claim> {
  const claim = await finish(below, key)
  const { fills } = tiered.cacheFigures()
  const isFilled = () => tiered.cacheFigures().fills > fills
  await waitFor(async () => {
    await replay(tiered, key)
    // The entry is sent without being waited for.
    for (let tries = 0; tries < 50 && !isFilled(); tries += 1) await pause(10)
    return isFilled()
  })
  return claim
}

/** The row that a claim is answered with. */
export async function replay(store: Store, key: string, over: Partial<ClaimRequest> = {}): Promise<ReadableRecord> {
  const result = await store.claim(claimRequest(key, over))
  if (result.kind === 'seen' && result.record.state !== 'unreadable') return result.record
  throw new Error(`${key} is ${result.kind}`)
}

/** A row without its age, to be compared. Bytes are bytes, whatever holds them. */
export function timeless({ outcome, fingerprint, ...rest }: KeyRecord): unknown {
  const hex = (bytes: Uint8Array | undefined) => bytes && Buffer.from(bytes).toString('hex')
  return {
    ...rest,
    ageMs: 0,
    fingerprint: hex(fingerprint),
    outcome: outcome && { ...outcome, headers: [...outcome.headers], body: hex(outcome.body) },
  }
}

export const bodyOf = ({ outcome: stored }: ReadableRecord) => stored?.body && Buffer.from(stored.body).toString()

export const pause = (ms: number) => new Promise<void>(resolve => setTimeout(resolve, ms))

export async function waitFor(condition: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 2_000; tries += 1) {
    if (await condition()) return
    await pause(5)
  }
  throw new Error('it did not happen within ten seconds')
}

/** The key of the row in the cache. */
export function keyIn(prefix: string, key: string): string {
  return `${prefix}:${claimRequest(key).identity.id}`
}
