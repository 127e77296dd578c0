/** Group commit: the calls of every request, gathered so that concurrent ones share a statement, a commit and its flush to disk. */
import { systemClock } from '../../../ports/clock.ts'
import { misconfigured } from '../../../ports/errors.ts'
import type { Store } from '../../../ports/store.ts'
import { openSender } from '../connection/batch-sender.ts'
import type { Sessions } from '../connection/prepared.ts'
import type { Observed } from '../../shared/observed.ts'
import type { PgPool } from '../driver.ts'
import { batchedClaim } from '../keys/claim.ts'
import { batchedComplete } from '../keys/complete.ts'
import { joinedEnqueue } from '../keys/enqueue.ts'
import { batchedHeartbeat } from '../keys/heartbeat.ts'
import { batchedRead } from '../keys/read.ts'
import type { Dialect } from '../sql/names.ts'
import type { QueuedCall, QueueLimits } from './batch-queue.ts'
import { type Carrier, openCarrier } from './carrier.ts'
import { sideBySide } from './side-by-side.ts'

export interface BatchingOptions {
  /** The most calls in one batch. Default: 250. Smaller makes batches shorter, larger helps only with many connections. */
  readonly sizeMax?: number
  /**
   * The most calls of one kind that are open at a time. Default: 10,000; no scope has more than it leaves free, so one alone has
   * half. The next one is refused with `overloaded`, which HTTP answers with 503: a database that does not keep up must not fill the
   * process's memory. Calls for one key that wait at the same time count once; of those behind the first there are at most four
   * times as many, and one key never has more than half.
   */
  readonly openMax?: number
  /** How long a batch may wait for its answer. Default: 2,000 ms, as `storeTimeoutMs` of `createLatchkey`; change it with that. */
  readonly timeoutMs?: number
  /**
   * How long a call may wait for its batch. Default: 3,000 ms; then it is refused with `overloaded`. Lower it where clients give up
   * sooner.
   */
  readonly queueMsMax?: number
}

export type SingleCalls = Pick<Store, 'claim' | 'enqueue' | 'read' | 'heartbeat' | 'complete'>

/** What the batched form of a call is made of. */
export interface Batching {
  readonly sql: Dialect
  /** The statements for one row: for all that a batch cannot decide. */
  readonly single: SingleCalls
  /** Opens a queue for calls that share a statement. */
  readonly together: Carrier['carry']
  /** Opens one for calls with statements of their own. */
  readonly sideBySide: <Item, Result>(kind: QueuedCall<Item, Result>) => (item: Item) => Promise<Result>
}

export interface BatchedStore {
  readonly sql: Dialect
  readonly pool: PgPool
  readonly sessions: Sessions
  readonly options: BatchingOptions
  readonly single: SingleCalls
  readonly observed: Observed
}

export function batchedCalls({ sql, pool, sessions, options, single, observed }: BatchedStore): SingleCalls {
  const queues = { limits: limitsOf(options), clock: systemClock }
  const limitMs = options.timeoutMs ?? timeoutMsDefault
  const sender = () => openSender({ pool, schema: sql.schema, sessions, limitMs, observed })
  const alone = pool.options?.max ?? connectionsDefault
  const batching = (carrier: Carrier): Batching => ({
    sql,
    single,
    together: carrier.carry,
    sideBySide: kind => sideBySide(kind, queues, alone),
  })
  // Claims come first in a message: while one waits for another process, the message holds no lock that the other could wait for.
  // Heartbeats have messages of their own, because the heartbeat and the completion of a row lock the same row.
  const requests = batching(openCarrier([sender(), sender()], { ...queues, observed }))
  const leases = batching(openCarrier([sender()], queues))
  return {
    ...batchedClaim(requests),
    ...batchedComplete(requests),
    ...batchedRead(requests),
    ...joinedEnqueue(requests),
    ...batchedHeartbeat(leases),
  }
}

const timeoutMsDefault = 2_000
const queueMsDefault = 3_000

/** Of a pool that does not show how many connections it has. */
const connectionsDefault = 10

export function queueMsOf(batching: boolean | BatchingOptions): number {
  if (typeof batching === 'boolean') return batching ? queueMsDefault : 0
  return batching.queueMsMax ?? queueMsDefault
}

function limitsOf({
  sizeMax = 250,
  openMax = 10_000,
  timeoutMs = timeoutMsDefault,
  queueMsMax = queueMsDefault,
}: BatchingOptions): QueueLimits {
  for (const [name, value] of Object.entries({ sizeMax, openMax, timeoutMs, queueMsMax })) {
    if (!(value >= 1)) throw misconfigured(`batching.${name} must be at least 1 (got ${value})`)
  }
  return {
    sizeMax,
    openMax,
    followersMax: 4 * openMax,
    waitMsMax: queueMsMax,
    // Before the caller's own limit, at which it would take a call that was never sent for one whose answer was lost.
    shareMsMax: queueMsMax + 0.9 * timeoutMs,
  }
}
