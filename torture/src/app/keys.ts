/** Where an application process keeps its keys, and the operations that depend on it. */
import type { Context } from 'hono'
import { Redis } from 'ioredis'
import type pg from 'pg'
import { createClient } from 'redis'
import {
  type AtomicOperation,
  createLatchkey,
  type DeferredOperation,
  type LatchkeyWithoutTransactions,
  type PhasedOperation,
  type Telemetry,
} from 'latchkey'
import { postgresStore } from 'latchkey/stores/postgres'
import { redisStore, type RedisClient } from 'latchkey/stores/redis'
import { tieredStore } from 'latchkey/stores/tiered'
import { keyOf, type MoneyOptions, paymentsOperation, refundsOperation } from './payments.ts'
import { effectPayments, effectRefunds } from './effect-payments.ts'
import type { Asked } from './shop.ts'

export interface RedisPlace {
  readonly url: string
  readonly client: 'ioredis' | 'node-redis'
}

export interface KeysOptions {
  /** The shop's own rows. */
  readonly pool: pg.Pool
  readonly dedup: boolean
  readonly money: MoneyOptions
  readonly latchkey: {
    readonly scope: (c: Context) => string
    readonly telemetry: Telemetry
    readonly storeTimeoutMs: number
  }
}

export interface Keys {
  readonly latchkey: LatchkeyWithoutTransactions<Context>
  /** Undefined: the store has no transactions. */
  readonly createOrder: AtomicOperation<pg.PoolClient, Context> | undefined
  readonly createPayment: PhasedOperation<Asked, Context>
  readonly createRefund: DeferredOperation<Asked, Context>
  readonly hasOutbox: boolean
  /** Requests that the cache has answered. */
  cacheHits(): number
  close(): Promise<void>
}

/** All of them: a cache must never make a difference. */
const cached = ['orders.create', 'payments.create', 'refunds.create', 'transfers.create', 'payouts.create']
/** Short, beside a lease: a duplicate may be refused for so long after its request has ended. */
const heldMs = 500

/** `cache`: in front of the database. */
export function keysInPostgres({ pool, dedup, money, latchkey: options }: KeysOptions, cache?: RedisPlace): Keys {
  const below = postgresStore({ pool })
  const opened = cache && openClient(cache)
  const tiered = opened && tieredStore({ store: below, cache: opened.client, operations: cached, heldMs })
  const latchkey = createLatchkey<pg.PoolClient, Context>({ ...options, store: tiered ?? below })
  return {
    latchkey,
    createOrder: latchkey.atomic('orders.create', { describe: keyOf }),
    createPayment: paymentsOperation(latchkey, { ...money, dedup }),
    createRefund: refundsOperation(latchkey, money),
    hasOutbox: true,
    cacheHits: () => tiered?.cacheFigures().hits ?? 0,
    close: async () => opened?.close(),
  }
}

export function keysInRedis(place: RedisPlace, { pool, dedup, money, latchkey: options }: KeysOptions): Keys {
  const { client, close } = openClient(place)
  const latchkey = createLatchkey<Context>({ ...options, store: redisStore({ client }) })
  return {
    latchkey,
    createOrder: undefined,
    createPayment: effectPayments(latchkey, { ...money, dedup, pool }),
    createRefund: effectRefunds(latchkey, { ...money, pool }),
    hasOutbox: false,
    cacheHits: () => 0,
    close,
  }
}

interface OpenClient {
  readonly client: RedisClient
  close(): Promise<void>
}

function openClient({ url, client }: RedisPlace): OpenClient {
  return client === 'ioredis' ? openIoredis(url) : openNodeRedis(url)
}

const reconnectMs = 100
/** A proxy that went dark would hold its connection for ever. */
const silentMsMax = 4_000

function openIoredis(url: string): OpenClient {
  const client = new Redis(url, {
    maxRetriesPerRequest: 1,
    retryStrategy: () => reconnectMs,
    connectTimeout: 1_500,
    socketTimeout: silentMsMax,
  })
  client.on('error', () => {})
  return { client, close: async () => client.disconnect() }
}

function openNodeRedis(url: string): OpenClient {
  const client = createClient({
    url,
    disableOfflineQueue: true,
    socket: { reconnectStrategy: () => reconnectMs, connectTimeout: 1_500, socketTimeout: silentMsMax },
  })
  client.on('error', () => {})
  // It connects again by itself until it can.
  void client.connect().catch(() => {})
  return { client, close: async () => client.destroy() }
}
