/** Requests without a pause, and the count of what a failover cost: answers that are gone, and handlers that ran twice. */
import { setTimeout as delay } from 'node:timers/promises'
import { createLatchkey, type LatchkeyWithoutTransactions } from '../../../src/engine/latchkey.ts'
import type { GuardedOperation } from '../../../src/engine/operation.ts'
import { isLatchkeyError } from '../../../src/ports/errors.ts'
import { silentTelemetry, type Telemetry } from '../../../src/ports/telemetry.ts'
import type { RedisStore } from '../../../src/stores/redis/index.ts'

/** A part of the network with its own clients: it is the others', or it is cut off with the old master. */
export type Side = 'others' | 'cut off' | 'afterwards'

interface Answered {
  readonly side: Side
  readonly atMs: number
  readonly value: string
}

export interface Ledger {
  /** By key, in their order. Only here it is known what really happened. */
  readonly runs: ReadonlyMap<string, readonly Answered[]>
  /** By key: the answer that its client got, and was told to be stored. */
  readonly acknowledged: ReadonlyMap<string, Answered>
  /** By code. */
  readonly refused: ReadonlyMap<string, number>
  /** Of the telemetry. */
  readonly failovers: ReadonlyMap<Side, number>
  ask(client: Client, key: string): Promise<Heard>
  counted(side: Side): void
}

type Heard = { readonly value: string } | { readonly code: string }

interface Client {
  readonly side: Side
  readonly operation: GuardedOperation<unknown>
}

const scope = 'acme'
const operationName = 'payments.create'
/** Beyond any test here: no row is taken over because its lease ran out. */
const leaseMs = 120_000
/** A request that hangs is given up, as by a client that waits no longer. */
const storeTimeoutMs = 1_500
const lanes = 8
const restMs = 20
const triesMax = 100

export function openLedger(): Ledger {
  const runs = new Map<string, Answered[]>()
  const acknowledged = new Map<string, Answered>()
  const refused = new Map<string, number>()
  const failovers = new Map<Side, number>()
  let values = 0
  return {
    runs,
    acknowledged,
    refused,
    failovers,
    counted: side => void failovers.set(side, (failovers.get(side) ?? 0) + 1),
    async ask({ side, operation }, key) {
      const handler = () => {
        const value = `${side} ${(values += 1)}`
        runs.set(key, [...(runs.get(key) ?? []), { side, atMs: performance.now(), value }])
        return value
      }
      try {
        const { value, kept } = await operation.runDetailed({ scope, key, input: {} }, handler)
        if (kept === 'yes' && !acknowledged.has(key)) acknowledged.set(key, { side, atMs: performance.now(), value })
        return { value }
      } catch (error) {
        if (!isLatchkeyError(error)) throw error
        refused.set(error.code, (refused.get(error.code) ?? 0) + 1)
        await delay(restMs)
        return { code: error.code }
      }
    },
  }
}

export interface Load {
  stop(): Promise<void>
}

export interface LoadOptions {
  readonly side: Side
  readonly store: RedisStore
  readonly ledger: Ledger
  /** Which identities this side can ask for. Default: all. */
  readonly accepts?: (id: string) => boolean
}

export function startLoad({ side, store, ledger, accepts = () => true }: LoadOptions): Load {
  const { latchkey, operation } = open(store, () => ledger.counted(side))
  let stopped = false
  let count = 0
  const nextKey = () => {
    for (;;) {
      // The name ends with a sign, so that no key is the beginning of another.
      const key = `${side}/${(count += 1)}/`
      if (accepts(latchkey.identify({ scope, operation: operationName, key }))) return key
    }
  }
  const lane = async () => {
    while (!stopped) {
      await ledger.ask({ side, operation }, nextKey())
      // Otherwise the timers of the clients would never come to their turn.
      await delay(1)
    }
  }
  const working = Promise.all(Array.from({ length: lanes }, lane))
  return {
    async stop() {
      stopped = true
      await working
      await latchkey.close({ timeoutMs: 100 })
    },
  }
}

function open(
  store: RedisStore,
  onFailover: () => void,
): { latchkey: LatchkeyWithoutTransactions<unknown>; operation: GuardedOperation<unknown> } {
  const telemetry: Telemetry = {
    ...silentTelemetry,
    // Of its own, so that the store is observed.
    observe: () => {},
    count: metric => metric === 'store.failover' && onFailover(),
  }
  const latchkey = createLatchkey({ store, scope: () => scope, telemetry, storeTimeoutMs, maintenance: false })
  return { latchkey, operation: latchkey.guarded(operationName, { onFailure: 'rerun', leaseMs }) }
}

export interface Loss extends Answered {
  readonly key: string
}

export interface Cost {
  readonly acknowledged: number
  /** Acknowledged, and a retry got another answer. */
  readonly lost: readonly Loss[]
  /** By their first run. */
  readonly ranTwice: readonly Loss[]
}

/** Every key once more, on the server that is the master now. */
export async function countCost(ledger: Ledger, store: RedisStore): Promise<Cost> {
  const before = new Map(ledger.acknowledged)
  const found = new Map<string, string>()
  const { latchkey, operation } = open(store, () => {})
  const client: Client = { side: 'afterwards', operation }
  const queue = [...new Set([...ledger.runs.keys(), ...before.keys()])]
  const retry = async () => {
    for (let key = queue.shift(); key !== undefined; key = queue.shift()) {
      const heard = await askUntilAnswered(ledger, client, key)
      if ('value' in heard) found.set(key, heard.value)
    }
  }
  await Promise.all(Array.from({ length: lanes }, retry))
  await latchkey.close({ timeoutMs: 100 })
  const lost = [...before].filter(([key, { value }]) => (found.get(key) ?? value) !== value)
  const twice = [...ledger.runs].flatMap(([key, [first, ...more]]) =>
    first !== undefined && more.length > 0 ? [{ key, ...first }] : [],
  )
  return { acknowledged: before.size, lost: lost.map(([key, answer]) => ({ key, ...answer })), ranTwice: twice }
}

/** The new master may not be known to the client yet. A row that is still owned has nothing to say. */
async function askUntilAnswered(ledger: Ledger, client: Client, key: string): Promise<Heard> {
  for (let tries = 0; tries < triesMax; tries += 1) {
    const heard = await ledger.ask(client, key)
    if ('value' in heard || heard.code === 'in-progress') return heard
    await delay(100)
  }
  throw new Error(`${key} got no answer after the failover: ${JSON.stringify([...ledger.refused])}`)
}

/** The longest time without an answer on this side. */
export function longestGapMs(ledger: Ledger, side: Side): number {
  const moments = [...ledger.acknowledged.values()].filter(answer => answer.side === side).map(({ atMs }) => atMs)
  const sorted = moments.toSorted((one, other) => one - other)
  return Math.max(0, ...sorted.slice(1).map((atMs, n) => atMs - (sorted[n] ?? atMs)))
}

/** How many were acknowledged on this side after this moment. */
export function acknowledgedSince(ledger: Ledger, side: Side, sinceMs: number): number {
  return [...ledger.acknowledged.values()].filter(answer => answer.side === side && answer.atMs > sinceMs).length
}

/** For the table of the guide. */
export function lineOf(what: string, ledger: Ledger, { acknowledged, lost, ranTwice }: Cost): string {
  const gap = (longestGapMs(ledger, 'others') / 1_000).toFixed(1)
  const refused = [...ledger.refused].map(([code, times]) => `${code} × ${times}`).join(', ')
  const counts = `${acknowledged} acknowledged, ${lost.length} lost, ${ranTwice.length} ran twice`
  return `${what}: ${counts}, away for ${gap} s; refused: ${refused || 'none'}`
}
