/** Processes of the shop on one PostgreSQL, what its clients send, and what it tells about itself. */
import pg from 'pg'
import { afterAll, beforeAll } from 'vitest'
import { identify, type Scope } from '../../src/engine/request.ts'
import type { KeyRecord } from '../../src/ports/store.ts'
import { openPlace, type Place } from '../processes/database.ts'
import { type Answer, answerOf, type App, eventually, forkApp, killDuring } from '../processes/fleet.ts'
import type { FromShop, ShopArgument } from './shop.ts'

/** Short, so that a dead lease is seen soon; long enough that a busy machine does not lose a live one. */
export const leaseMs = 3_000

export interface Shop extends App {
  /** In the order in which it was told. */
  readonly told: readonly FromShop[]
  /** Waits until all has arrived that it told about the requests that it has answered. */
  flush(): Promise<void>
  counted(metric: string): readonly FromShop[]
  /** All that the process wrote to its standard output and standard error. */
  output(): string
}

export async function startShop(argument: ShopArgument, execArgv: readonly string[] = []): Promise<Shop> {
  const shop = new URL('./shop.ts', import.meta.url)
  const { app, child } = await forkApp(shop, argument, { execArgv, silent: true })
  const told: FromShop[] = []
  const written: string[] = []
  const waiting: (() => void)[] = []
  child.on('message', (message: FromShop) => {
    if (message.kind === 'flushed') waiting.shift()?.()
    else told.push(message)
  })
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', chunk => void written.push(String(chunk)))
  return {
    ...app,
    told,
    flush() {
      child.send('flush')
      return new Promise(resolve => void waiting.push(resolve))
    },
    counted: metric => told.filter(({ kind, what }) => kind === 'counted' && what === metric),
    output: () => written.join(''),
  }
}

export interface Asked {
  /** Absent: the request has no key. */
  readonly key?: string | undefined
  /** Default POST. */
  readonly method?: string
  /** Default /orders. */
  readonly path?: string
  /** Default acme. */
  readonly account?: string
  /** Default ada. */
  readonly user?: string
  /** Default: the key as `label`, by which executions are counted. */
  readonly body?: object | undefined
  readonly headers?: Readonly<Record<string, string>>
}

export interface Reply extends Answer {
  readonly headers: Headers
}

const withoutBody = new Set(['GET', 'DELETE'])

export async function ask(shop: Shop, asked: Asked): Promise<Reply> {
  const { key, method = 'POST', path = '/orders', account = 'acme', user = 'ada', body = { label: key } } = asked
  const response = await fetch(`${shop.url}${path}`, {
    method,
    headers: {
      'content-type': 'application/json',
      'x-account': account,
      'x-user': user,
      ...(key === undefined ? {} : { 'idempotency-key': key }),
      ...asked.headers,
    },
    ...(withoutBody.has(method) ? {} : { body: JSON.stringify(body) }),
  })
  return { ...(await answerOf(response)), headers: response.headers }
}

export interface Stage {
  readonly place: Place
  readonly pool: pg.Pool
  /** Two processes, in which no workers run. */
  readonly shops: readonly [Shop, Shop]
  /** What they were started with. */
  readonly argument: ShopArgument
  rowOf(row: RowName): Promise<KeyRecord | undefined>
}

interface RowName {
  readonly operation: string
  readonly key: string
  /** Default acme. */
  readonly scope?: Scope
}

export function idOf({ operation, key, scope = 'acme' }: RowName): string {
  return identify({ scope, operation, key }).id
}

/** For all tests of a suite. */
export function twoShops(url: () => string): Stage {
  // Filled before the first test runs.
  const scene = {} as { -readonly [Name in keyof Stage]: Stage[Name] }
  beforeAll(async () => {
    scene.pool = new pg.Pool({ connectionString: url(), max: 4 })
    // The server is killed in one of the tests; the pool replaces what broke.
    scene.pool.on('error', () => {})
    scene.place = await openPlace(url())
    await scene.place.migrate()
    scene.argument = { place: url(), leaseMs }
    scene.rowOf = row => scene.place.store.read(idOf(row))
    scene.shops = await Promise.all([startShop(scene.argument), startShop(scene.argument)])
  })
  afterAll(async () => {
    await Promise.all(scene.shops.map(shop => shop.stop()))
    await scene.place.close()
    await scene.pool.end()
  })
  return scene
}

/** Sends a request to a process of its own and kills that when `label` has been counted once. */
export async function killAt(scene: Stage, label: string, asked: Asked): Promise<void> {
  const victim = await startShop(scene.argument)
  await killDuring(victim, ask(victim, asked), async () => (await scene.place.executions(label)) === 1)
}

/** Waits until the handler is at work, so that a duplicate finds it there. */
export async function hasRun({ place }: Stage, label: string): Promise<void> {
  await eventually(
    () => place.executions(label),
    count => count === 1,
  )
}

/** As if the retention had passed a while ago. */
export async function expire({ pool }: Stage, row: RowName): Promise<void> {
  await pool.query(`update latchkey.keys set expires_at = clock_timestamp() - interval '1 hour' where id = $1`, [
    idOf(row),
  ])
}
