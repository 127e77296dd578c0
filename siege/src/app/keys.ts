/** Where the application keeps its keys, and the operations that depend on it. */
import type { Context } from 'hono'
import { Redis } from 'ioredis'
import pg from 'pg'
import {
  type AtomicOperation,
  createLatchkey,
  type DeferredOperation,
  type EffectsExecution,
  type LatchkeyWithoutTransactions,
  type Outcome,
  type PhasedOperation,
  silentTelemetry,
} from 'latchkey'
import { postgresStore } from 'latchkey/stores/postgres'
import { redisStore } from 'latchkey/stores/redis'
import { tieredStore } from 'latchkey/stores/tiered'
import { operations } from './operations.ts'

export interface Input {
  readonly account: string
  readonly body: string
}

export interface Keys {
  readonly latchkey: LatchkeyWithoutTransactions<Context>
  /** Undefined: the store has no transactions. */
  readonly atomic: AtomicOperation<pg.PoolClient, Context> | undefined
  readonly phased: PhasedOperation<Input, Context>
  readonly deferred: DeferredOperation<Input, Context>
  /** Requests that the cache has answered. */
  cacheHits(): number
}

export interface Places {
  /** Of the server that holds the keys. */
  readonly keysUrl: string
  /** Of the cache in front of it, with `--store tiered`. */
  readonly cacheUrl: string | undefined
}

/** The effect of phased work and its answer. */
export type Work = (x: EffectsExecution, input: Input) => Promise<Outcome>

const shared = {
  scope: (c: Context) => c.req.header('x-account') ?? '',
  // The enemies cause faults by the thousand.
  telemetry: silentTelemetry,
}
const version = { version: 1 }
/** Duplicates of a running request are refused by the cache for so long. */
const heldMs = 500
const deadline = { deadlineMs: 600_000 }

export function keysInPostgres({ keysUrl, cacheUrl }: Places, work: Work): Keys {
  const pool = new pg.Pool({ connectionString: keysUrl, max: 10 })
  const below = postgresStore({ pool })
  const names = Object.values(operations)
  const cache = cacheUrl === undefined ? undefined : openRedis(cacheUrl)
  const tiered = cache && tieredStore({ store: below, cache, operations: names, heldMs })
  const latchkey = createLatchkey<pg.PoolClient, Context>({ ...shared, store: tiered ?? below })
  const { phased, deferred } = operations
  const record = (id: string) => (tx: pg.PoolClient) => tx.query('insert into steps values ($1)', [id]).then(() => null)
  return {
    latchkey,
    atomic: latchkey.atomic(operations.atomic),
    phased: latchkey.phased<Input>(phased, version, async (x, input) => {
      await x.phase('record', record(x.id))
      return work(x, input)
    }),
    deferred: latchkey.deferred<Input>(deferred, deadline, async (x, input) => {
      await x.phase('record', record(x.id))
      return work(x, input)
    }),
    cacheHits: () => tiered?.cacheFigures().hits ?? 0,
  }
}

export function keysInRedis({ keysUrl }: Places, work: Work): Keys {
  const latchkey = createLatchkey<Context>({ ...shared, store: redisStore({ client: openRedis(keysUrl) }) })
  const { phased, deferred } = operations
  return {
    latchkey,
    atomic: undefined,
    phased: latchkey.phased<Input>(phased, { ...version, steps: 'effects' }, work),
    deferred: latchkey.deferred<Input>(deferred, { ...deadline, steps: 'effects' }, work),
    cacheHits: () => 0,
  }
}

function openRedis(url: string): Redis {
  const client = new Redis(url, { maxRetriesPerRequest: 1, retryStrategy: () => 100 })
  client.on('error', () => {})
  return client
}
