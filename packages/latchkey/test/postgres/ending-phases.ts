/** What an application does with its connections when they end, phase by phase. It listens to no 'error' itself. */
import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { createLatchkey } from 'latchkey'
import { postgresStore, type PostgresStore } from 'latchkey/stores/postgres'
import type { PgPool } from '../../src/stores/postgres/driver.ts'
import type { EndingServer, Script } from './ending-server.ts'
import { silentTelemetry } from '../../src/ports/telemetry.ts'

export interface Scene {
  readonly server: EndingServer
  /** Of one connection, so that who comes second waits for who was first. */
  readonly pool: pg.Pool
  /** A connection of the caller's own, of no pool. */
  connectAlone(): Promise<pg.Client>
  /** Every connection made so far has ended, and has said so. */
  ended(): Promise<void>
}

export interface Phase {
  readonly script: Omit<Script, 'ending'>
  act(scene: Scene): Promise<unknown>
}

export const phases = {
  'before it is greeted': { script: { at: 'startup', before: 'nothing' }, act: callEverything },
  'as it is greeted': { script: { at: 'startup' }, act: callEverything },
  idle: {
    script: {},
    async act({ pool, server, ended }) {
      postgresStore({ pool })
      await pool.query('select 1')
      server.end()
      await ended()
    },
  },
  'handed over by a query to a transaction': {
    script: { at: /^select first/ },
    act: ({ pool }) => together(pool.query('select first'), transaction(postgresStore({ pool }))),
  },
  'handed over by a query to a batch': {
    script: { at: /^select first/ },
    act: ({ pool }) => together(pool.query('select first'), claim(postgresStore({ pool }))),
  },
  'handed over by a query to the application': {
    script: { at: /^select first/ },
    act({ pool }) {
      postgresStore({ pool })
      return together(pool.query('select first'), checkOut(pool))
    },
  },
  'handed over by a batch to the application': {
    script: { at: /^insert/ },
    act: ({ pool }) => together(claim(postgresStore({ pool })), checkOut(pool)),
  },
  'handed over by a transaction to the application': {
    script: { at: /^COMMIT/ },
    act: ({ pool }) => together(transaction(postgresStore({ pool })), checkOut(pool)),
  },
  'checked out by the application': { script: {}, act: heldWhileItEnds },
  'made before the store and checked out by the application': {
    script: {},
    async act(scene) {
      await scene.pool.query('select 1')
      await heldWhileItEnds(scene)
    },
  },
  'in a batch': {
    script: { at: /claim_many|^insert/, before: 'nothing' },
    act({ pool }) {
      const store = postgresStore({ pool })
      return together(...Array.from({ length: 20 }, () => claim(store)))
    },
  },
  'with the answer to a batch': {
    script: { at: /claim_many|^insert/ },
    act({ pool }) {
      const store = postgresStore({ pool })
      return together(...Array.from({ length: 20 }, () => claim(store)))
    },
  },
  'in a batch, of a pool that emits nothing': {
    script: { at: /^insert/, before: 'nothing' },
    act: ({ pool }) => claim(postgresStore({ pool: withoutEvents(pool) })),
  },
  'between the statements of a transaction': {
    script: {},
    act: ({ pool, server, ended }) =>
      transaction(postgresStore({ pool }), async () => {
        server.end()
        await ended()
      }),
  },
  'between the statements of a transaction, of a pool that emits nothing': {
    script: {},
    act: ({ pool, server, ended }) =>
      transaction(postgresStore({ pool: withoutEvents(pool) }), async () => {
        server.end()
        await ended()
      }),
  },
  'with the answer to a statement of a transaction': {
    script: { at: /^select inside/ },
    act: ({ pool }) => transaction(postgresStore({ pool }), tx => tx.query('select inside')),
  },
  'instead of the answer to COMMIT': { script: { at: /^COMMIT/, before: 'nothing' }, act: inTransaction },
  'with the answer to COMMIT': { script: { at: /^COMMIT/ }, act: inTransaction },
  'with the answer to ROLLBACK': {
    script: { at: /^ROLLBACK/ },
    act: ({ pool }) => transaction(postgresStore({ pool }), () => Promise.reject(new Error('no'))),
  },
  'after it was given back with an error': {
    script: { refuses: /^insert/, at: 'goodbye' },
    act: ({ pool }) => claim(postgresStore({ pool })),
  },
  'between the statements that we send in a transaction handed in by the caller': {
    script: { at: /^RELEASE SAVEPOINT/ },
    act: handedIn,
  },
  'while the caller is about to end the transaction that was handed in': {
    script: {},
    async act(scene) {
      await handedIn(scene).catch(() => {})
      scene.server.end()
      await scene.ended()
    },
  },
} satisfies Record<string, Phase>

export type PhaseName = keyof typeof phases

function claim(store: PostgresStore<unknown>): Promise<unknown> {
  const identity = { id: randomUUID(), scope: 'acme', operation: 'pay' }
  const times = { description: undefined, leaseMs: 1_000, expiresInMs: 1_000 }
  return store.claim({ identity, claimId: randomUUID(), fingerprint: Buffer.from('f'), recovery: 'hold', ...times })
}

function transaction(
  store: PostgresStore<unknown>,
  work: (tx: pg.PoolClient) => Promise<unknown> = async () => {},
): Promise<unknown> {
  if (store.transactor === undefined) throw new Error('this store has transactions')
  return store.transactor.transaction(async tx => {
    // What the transactor hands out is a client of the pool.
    await work(tx as pg.PoolClient)
    return 'commit'
  })
}

function inTransaction({ pool }: Scene): Promise<unknown> {
  return transaction(postgresStore({ pool }))
}

function withoutEvents(pool: pg.Pool): PgPool {
  return { query: (text, values) => pool.query(text, values), connect: () => pool.connect() }
}

async function checkOut(pool: pg.Pool): Promise<void> {
  const client = await pool.connect()
  client.release()
}

/** One after the other, each on a connection of its own: the one before has ended. */
async function callEverything({ pool }: Scene): Promise<void> {
  const store = postgresStore({ pool })
  for (const call of [claim, transaction, () => checkOut(pool), () => pool.query('select 1')]) {
    await call(store).catch(() => {})
  }
}

async function heldWhileItEnds({ pool, server, ended }: Scene): Promise<void> {
  postgresStore({ pool })
  const client = await pool.connect()
  server.end()
  await ended()
  client.release()
}

async function handedIn({ pool, connectAlone }: Scene): Promise<void> {
  const latchkey = createLatchkey({ store: postgresStore({ pool }), scope: () => 'acme', telemetry: silentTelemetry })
  const client = await connectAlone()
  await client.query('begin')
  await latchkey.atomic('pay').run({ scope: 'acme', key: 'k1', input: {}, tx: client }, async () => 'paid')
}

async function together(...calls: readonly Promise<unknown>[]): Promise<void> {
  await Promise.allSettled(calls)
}
