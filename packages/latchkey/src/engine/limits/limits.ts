/** What a scope may do in a minute, and how much of it may be stored: of all operations together, and of one of them. */
import type { Clock } from '../../ports/clock.ts'
import { misconfigured } from '../../ports/errors.ts'
import type { Store } from '../../ports/store.ts'
import type { Telemetry } from '../../ports/telemetry.ts'
import type { StoreCalls } from '../store/call.ts'
import type { Figures } from './with-figures.ts'
import { ScopeFigures } from './scope-figures.ts'
import { RefusalPace } from './refusal-pace.ts'
import { SharedBuckets } from './shared-buckets.ts'
import type { LimitKind, QuotaHost, Source } from './source.ts'
import { TokenBuckets } from './token-buckets.ts'

/** Each is for one scope. What is not given is not limited. */
export interface LimitOptions {
  /** Grants of new keys. A retry of a key that has a row, whatever came of it, never counts. */
  readonly newKeysPerMinute?: number
  /** Requests that find a row, or look for one: retries, replays, and questions to the status resource. Against guessing of keys. */
  readonly lookupsPerMinute?: number
  /** Keys that are used again for another request. Against a client that reuses keys in a loop. */
  readonly mismatchesPerMinute?: number
  /**
   * Keys that have not come to their end: pending, in progress, failed and free for a retry, or unknown. Beyond it new keys are refused. Approximate: the
   * store counts them at most once a minute, and every five seconds for a scope that is refused.
   */
  readonly openKeys?: number
  /** Bytes of answers and inputs that are stored. Beyond it new keys are refused, until enough of them has expired. As approximate as `openKeys`. */
  readonly storedBytes?: number
  /**
   * The limits per minute hold for all processes on the store together, up to one lease of each: a tenth of the limit, and at most 100. Default false: each
   * process counts for itself; an operation does as its Latchkey. True where several processes serve a tenant; it costs a call to the store for each lease.
   */
  readonly shared?: boolean
}

/** Of a Latchkey, or of one of its operations. */
export interface Limits {
  readonly sources: Readonly<Record<LimitKind, readonly Source[]>>
  readonly figures: Figures
  readonly pace: RefusalPace
  readonly shared: boolean
}

export interface LimitHost {
  readonly store: Pick<Store, 'name' | 'quotas'>
  readonly calls: StoreCalls
  readonly clock: Clock
  readonly telemetry: Telemetry
  /** Of the Latchkey, for its operations. */
  readonly limits?: Limits | undefined
}

/** Made once for a Latchkey, and once for each operation that has limits of its own. */
export function limitsOf(options: LimitOptions | undefined, host: LimitHost, operation?: string): Limits | undefined {
  if (options === undefined) return undefined
  const { shared = host.limits?.shared ?? false } = options
  const buckets = (limit: LimitKind, perMinute: number | undefined): readonly Source[] => {
    if (perMinute === undefined) return []
    if (!shared) return [sourceOf(limit, new TokenBuckets(perMinute, host.clock))]
    const quotaHost = quotaHostOf(host, 'shared', operation)
    return [sourceOf(limit, new SharedBuckets(quotaHost, { limit, perMinute, operation }))]
  }
  const figures = figuresOf(options, host, operation)
  return {
    sources: {
      'new-keys': [...figures.openKeys, ...figures.storedBytes, ...buckets('new-keys', options.newKeysPerMinute)],
      lookups: buckets('lookups', options.lookupsPerMinute),
      mismatches: buckets('mismatches', options.mismatchesPerMinute),
    },
    figures,
    pace: new RefusalPace(host.clock),
    shared,
  }
}

function figuresOf({ openKeys, storedBytes }: LimitOptions, host: LimitHost, operation: string | undefined): Figures {
  return {
    openKeys: given(openKeys, max => {
      const { quotas } = quotaHostOf(host, 'openKeys', operation)
      const count = (scope: string) => quotas.openKeys({ scope, operation, max })
      return new ScopeFigures(host, { limit: 'open-keys', max, perKey: 1, count })
    }),
    storedBytes: given(storedBytes, max => {
      const { quotas } = quotaHostOf(host, 'storedBytes', operation)
      const count = (scope: string) => quotas.storedBytes({ scope, operation })
      return new ScopeFigures(host, { limit: 'stored-bytes', max, perKey: 0, count })
    }),
  }
}

function given<T>(max: number | undefined, figures: (max: number) => T): readonly T[] {
  return max === undefined ? [] : [figures(max)]
}

function quotaHostOf(host: LimitHost, option: string, operation = 'createLatchkey'): QuotaHost {
  const { quotas, name } = host.store
  if (quotas !== undefined) return { ...host, quotas }
  throw misconfigured(
    `${operation}: limits.${option} needs a store that counts for all its processes (Store.quotas), which the ${name} store does not: leave it out, or use the store of PostgreSQL, SQLite or memory`,
  )
}

function sourceOf(limit: LimitKind, buckets: Omit<Source, 'limit'>): Source {
  return {
    limit,
    take: (scope, mayWait) => buckets.take(scope, mayWait),
    giveBack: scope => buckets.giveBack(scope),
    nextInMs: scope => buckets.nextInMs(scope),
  }
}
