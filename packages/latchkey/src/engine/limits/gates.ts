/** What a scope may do in a minute: of all operations together, and of one of them. */
import type { Clock } from '../../ports/clock.ts'
import { TokenBuckets } from './token-buckets.ts'

/** Each is for one scope. What is not given is not limited. */
export interface LimitOptions {
  /** Grants of new keys. A retry of a key that has a row, whatever came of it, never counts. */
  readonly newKeysPerMinute?: number
  /** Requests that find a row, or look for one: retries, replays, and questions to the status resource. Against guessing of keys. */
  readonly lookupsPerMinute?: number
  /** Keys that are used again for another request. Against a client that reuses keys in a loop. */
  readonly mismatchesPerMinute?: number
}

export type LimitKind = 'new-keys' | 'lookups' | 'mismatches'

/** The buckets that one kind of event is taken from: of the whole, and of the operation. */
export interface Gate {
  /** Undefined: it may pass. Otherwise when it may. */
  take(scope: string): number | undefined
  giveBack(scope: string): void
}

export type Gates = Readonly<Record<LimitKind, Gate>>

const open: Gate = { take: () => undefined, giveBack() {} }

export type Buckets = Readonly<Record<LimitKind, TokenBuckets | undefined>>

/** Made once for a Latchkey, and once for each operation that has limits of its own. */
export function bucketsOf(options: LimitOptions | undefined, clock: Pick<Clock, 'monotonicMs'>): Buckets | undefined {
  if (options === undefined) return undefined
  const buckets = (perMinute: number | undefined) =>
    perMinute === undefined ? undefined : new TokenBuckets(perMinute, clock)
  return {
    'new-keys': buckets(options.newKeysPerMinute),
    lookups: buckets(options.lookupsPerMinute),
    mismatches: buckets(options.mismatchesPerMinute),
  }
}

/** Undefined: nothing is limited, and nothing is paid for it. */
export function gatesOf(whole: Buckets | undefined, own: Buckets | undefined): Gates | undefined {
  if (whole === undefined && own === undefined) return undefined
  const gate = (kind: LimitKind) => gateOf([whole?.[kind], own?.[kind]].filter(buckets => buckets !== undefined))
  return { 'new-keys': gate('new-keys'), lookups: gate('lookups'), mismatches: gate('mismatches') }
}

function gateOf(all: readonly TokenBuckets[]): Gate {
  if (all.length === 0) return open
  const giveBack = (scope: string, to = all) => {
    for (const buckets of to) buckets.giveBack(scope)
  }
  return {
    take(scope) {
      for (const [at, buckets] of all.entries()) {
        if (buckets.take(scope)) continue
        giveBack(scope, all.slice(0, at))
        return Math.max(...all.map(one => one.nextInMs(scope)))
      }
      return undefined
    },
    giveBack: scope => giveBack(scope),
  }
}
