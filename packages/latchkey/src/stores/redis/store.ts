/** The store on Redis, assembled. */
import type { Steps } from '../../ports/steps.ts'
import type { Ledgers, Reconciliation } from '../../ports/reconciliation.ts'
import type { StoreCheck, StoreWithoutTransactions } from '../../ports/store.ts'
import type { RedisClient } from '../shared/redis/driver.ts'
import { isIoredis, senderOf } from '../shared/redis/sender.ts'
import { fitnessOf } from './connection/fitness.ts'
import { openLink } from './connection/link.ts'
import { type ReplicaOptions, replicasOf } from './connection/replicas.ts'
import { claimer } from './keys/claim.ts'
import { completer } from './keys/complete.ts'
import { enqueue } from './keys/enqueue.ts'
import { fail, park } from './keys/fail.ts'
import { heartbeat } from './keys/heartbeat.ts'
import { list } from './keys/list.ts'
import { forget, inspect, unpark } from './keys/operator.ts'
import { reap } from './keys/reap.ts'
import { release, releaseMany } from './keys/release.ts'
import { resumable } from './keys/resumable.ts'
import { readRecord } from './keys/row.ts'
import { sweep } from './keys/sweep.ts'
import { redisReconciliation } from './reconcile/index.ts'
import { redisLedgers } from './reconcile/ledgers.ts'
import { settle } from './reconcile/settle.ts'
import { redisSteps } from './steps/steps.ts'

export interface RedisStoreOptions {
  /**
   * A client of ioredis (`new Redis(…)`, `new Cluster(…)`) or of node-redis (`createClient(…)`, `createCluster(…)`, `createSentinel(…)`, connected). It may
   * be shared with the application. Let it give up soon, so that an outage is an error and not a hang: `maxRetriesPerRequest: 1` in ioredis, `disableOfflineQueue: true` in node-redis.
   */
  readonly client: RedisClient
  /** What all keys begin with. Default: `lk`. Change it when several applications share one Redis. */
  readonly prefix?: string
  /**
   * Waits until so many replicas have a claim, an answer or a step, so that a failover to one of them loses none. Default: does not wait. Not with a
   * cluster, and not with `createSentinel`. While it waits, its connection does: give the store a client of its own.
   */
  readonly replicas?: ReplicaOptions
  /**
   * Serves requests although the server may evict keys when its memory is full. Default: false; such a server is refused, because a key that was evicted
   * runs twice. Set it where you prefer that to a refusal.
   */
  readonly allowEviction?: boolean
}

export interface RedisStore extends StoreWithoutTransactions {
  readonly steps: Steps
  readonly reconciliation: Reconciliation
  readonly ledgers: Ledgers
  check(): Promise<StoreCheck>
}

/** `forwardMs`: a Lua expression that is added to the server's time, for tests. */
export function openRedisStore(options: RedisStoreOptions & { readonly forwardMs?: string }): RedisStore {
  const { client, prefix = 'lk', replicas, allowEviction = false, forwardMs } = options
  const link = openLink({
    sender: senderOf(client),
    prefix,
    isCluster: isCluster(client),
    replicas: replicas && replicasOf(client, replicas),
    forwardMs,
  })
  const fitness = fitnessOf({ link, client, isCluster: isCluster(client), allowEviction })
  const claim = claimer(link, error => fitness.failed(error))
  const complete = completer(link)

  /** Nothing is granted by a server that is not known to keep it. */
  function grant<T>(run: () => Promise<T>): Promise<T> {
    const checked = fitness.ensure()
    return checked === undefined ? run() : checked.then(run)
  }

  function rethrow(error: unknown): never {
    fitness.failed(error)
    throw error
  }

  return {
    name: 'redis',
    traits: {
      kinds: ['guarded', 'phased', 'deferred'],
      transactional: false,
      get durable() {
        return fitness.durable
      },
      clock: 'store',
      processes: 'many',
      fence: 'rising',
      faculties: ['steps', 'reconciliation', 'ledgers'],
      connections: undefined,
    },
    observe: observer => fitness.observe(observer),
    steps: redisSteps(link),
    reconciliation: redisReconciliation(link),
    ledgers: redisLedgers(link),

    claim: request => grant(() => claim(request)),
    enqueue: request => grant(() => enqueue(link, request).catch(rethrow)),
    read: id => readRecord(link, id),
    heartbeat: (owned, leaseMs) => heartbeat(link, owned, leaseMs),
    complete,
    fail: (owned, failure) => fail(link, owned, failure),
    release: (id, claimId) => release(link, id, claimId),
    releaseMany: claims => releaseMany(link, claims),

    async sweep(which) {
      // Not for one row, which a request waits for.
      if (which.id === undefined) await fitness.check()
      return sweep(link, which)
    },
    resumable: which => resumable(link, which),
    park: (owned, cause) => park(link, owned, cause),
    reap: which => reap(link, which),

    list: listing => list(link, listing),
    inspect: id => inspect(link, id),
    settle: (id, verdict, act, retentionMs) => settle(link, id, { verdict, act, retentionMs }),
    forget: (id, act) => forget(link, id, act),
    unpark: (id, act) => unpark(link, id, act),

    check: () => fitness.check(),
  }
}

/** Of either client. */
export function isCluster(client: RedisClient): boolean {
  return isIoredis(client) ? client.isCluster === true : client.masters !== undefined
}
