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
}

/** The effect of phased work and its answer. */
export type Work = (x: EffectsExecution, input: Input) => Promise<Outcome>

const shared = {
  scope: (c: Context) => c.req.header('x-account') ?? '',
  // The enemies cause faults by the thousand.
  telemetry: silentTelemetry,
}
const version = { version: 1 }
const deadline = { deadlineMs: 600_000 }

export function keysInPostgres(url: string, work: Work): Keys {
  const pool = new pg.Pool({ connectionString: url, max: 10 })
  const latchkey = createLatchkey<pg.PoolClient, Context>({ ...shared, store: postgresStore({ pool }) })
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
  }
}

export function keysInRedis(url: string, work: Work): Keys {
  const client = new Redis(url, { maxRetriesPerRequest: 1 })
  client.on('error', () => {})
  const latchkey = createLatchkey<Context>({ ...shared, store: redisStore({ client }) })
  const { phased, deferred } = operations
  return {
    latchkey,
    atomic: undefined,
    phased: latchkey.phased<Input>(phased, { ...version, steps: 'effects' }, work),
    deferred: latchkey.deferred<Input>(deferred, { ...deadline, steps: 'effects' }, work),
  }
}
