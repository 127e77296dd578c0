/**
 * Calls of one kind, gathered into batches without a timer: what arrives while a batch is under way forms the next one, and
 * a call that finds nothing under way is sent at the end of this turn of the event loop.
 *
 * Calls with one key never share a batch. Where the kind allows it, those that arrive while the first of them still waits follow
 * it, and its answer is theirs: a thousand callers of one key are one call. They were never sent, so they are never in doubt.
 */
import type { Clock } from '../../../ports/clock.ts'
import { LatchkeyError } from '../../../ports/errors.ts'
import { isRefusalOfRows } from '../connection/errors.ts'
import {
  type Call,
  close,
  enter,
  neverSent,
  type QueueLimits,
  refuseAll,
  refuseLate,
  requeue,
  takeBatch,
  takeFollowers,
  type WaitingCalls,
  waitingCalls,
} from './waiting-calls.ts'

/** One kind of call. */
export interface BatchedCall<Item, Result> {
  /** What is refused, in messages. */
  readonly name: string
  readonly keyOf: (item: Item) => string
  /** A scope has its share of the open calls. Absent: the kind of call does not name its scope. */
  readonly scopeOf?: (item: Item) => string
  /** Whether the answer to `sent` is also one to `joined`, which arrived before it was sent. Absent: never. */
  readonly mayShare?: (result: Result, sent: Item, joined: Item) => boolean
  /** The statement that knows every state. */
  readonly sendAlone: (item: Item) => Promise<Result>
  /** A batch of one, where there is a cheaper statement than the batch's. */
  readonly sendOne?: (item: Item) => Promise<Result>
  /** The result of a member may be a promise that is still open. Absent: the members of a batch are sent alone, side by side. */
  readonly sendMany?: (items: readonly Item[]) => Promise<readonly (Result | Promise<Result>)[]>
}

export interface QueueOptions {
  readonly limits: QueueLimits
  readonly clock: Clock
}

/** How often waiting calls are checked: a twentieth of the longest wait is soon enough, and rare enough for thousands. */
const checksPerWait = 20

/** As the lock timeout of a batch: a call that waits for a lock holds up those that come after it for no longer. */
const heldMsMax = 50

interface BatchQueue<Item, Result> {
  readonly kind: BatchedCall<Item, Result>
  readonly calls: WaitingCalls<Item, Result>
  readonly limits: QueueLimits
  readonly clock: Clock
  /** A batch was sent and holds up the next one, or is about to be sent. */
  isUnderWay: boolean
  isWatched: boolean
}

export function batchQueue<Item, Result>(
  kind: BatchedCall<Item, Result>,
  { limits, clock }: QueueOptions,
): (item: Item) => Promise<Result> {
  const calls = waitingCalls<Item, Result>({ ...kind, limits, clock })
  const queue: BatchQueue<Item, Result> = { kind, calls, limits, clock, isUnderWay: false, isWatched: false }
  return item => {
    const answer = new Promise<Result>((resolve, reject) => {
      const refusal = enter(calls, { item, sinceMs: clock.monotonicMs(), resolve, reject, followers: undefined })
      if (refusal !== undefined) reject(refusal)
    })
    if (queue.isUnderWay) watch(queue)
    else setImmediate(sendBatch, queue)
    queue.isUnderWay = true
    return answer
  }
}

function sendBatch<Item, Result>(queue: BatchQueue<Item, Result>): void {
  const { calls, kind } = queue
  // What can be sent now is sent, however long it has waited in this process.
  const batch = takeBatch(calls)
  refuseLate(calls)
  if (batch.length === 0) return void (queue.isUnderWay = false)
  for (const call of batch) if (call.followers !== undefined) lead(queue, call)
  const { sendAlone, sendOne, sendMany } = kind
  if (sendMany !== undefined && (sendOne === undefined || batch.length > 1)) return sendTogether(queue, batch, sendMany)
  const onAnswer = sendNextAfter(queue, batch.length)
  for (const call of batch) {
    const answer = sendOne === undefined ? sendAlone(call.item) : sendOne(call.item)
    answer
      .then(
        result => settle(queue, call, result),
        (error: unknown) => refuseOrResend(queue, call, error),
      )
      .then(onAnswer, onAnswer)
  }
}

function sendTogether<Item, Result>(
  queue: BatchQueue<Item, Result>,
  batch: readonly Call<Item, Result>[],
  send: NonNullable<BatchedCall<Item, Result>['sendMany']>,
): void {
  send(batch.map(({ item }) => item))
    .then(
      results => settleAll(queue, batch, results),
      (error: unknown) => batch.forEach(call => void refuseOrResend(queue, call, error)),
    )
    .finally(() => setImmediate(sendBatch, queue))
}

/** Returns what each answer calls. The next batch is sent after `count` answers, or without them once they are held up. */
function sendNextAfter<Item, Result>(queue: BatchQueue<Item, Result>, count: number): () => void {
  let left = count
  const cancel = queue.clock.after(heldMsMax, () => {
    left = 0
    setImmediate(sendBatch, queue)
  })
  return () => {
    left -= 1
    if (left !== 0) return
    cancel()
    setImmediate(sendBatch, queue)
  }
}

function settleAll<Item, Result>(
  queue: BatchQueue<Item, Result>,
  batch: readonly Call<Item, Result>[],
  results: readonly (Result | Promise<Result>)[],
): void {
  for (const [index, call] of batch.entries()) {
    if (index >= results.length) {
      refuse(queue, call, new LatchkeyError('invariant', 'a batch has fewer results than members'))
      continue
    }
    // Within the bounds that were just compared.
    const result = results[index] as Result | Promise<Result>
    if (result instanceof Promise) void settleLater(queue, call, result)
    else settle(queue, call, result)
  }
}

/** A member that is answered by a statement of its own is open until then, and its batch does not wait for it. */
function settleLater<Item, Result>(
  queue: BatchQueue<Item, Result>,
  call: Call<Item, Result>,
  answer: Promise<Result>,
): Promise<void> {
  return answer.then(
    result => settle(queue, call, result),
    (error: unknown) => refuse(queue, call, error),
  )
}

/**
 * Refused for one of the batch's rows, so that nothing of it was written: each is sent alone, and holds up no other. After any other
 * error it is not known what was written; the engine finds out, by claim id.
 */
function refuseOrResend<Item, Result>(
  queue: BatchQueue<Item, Result>,
  call: Call<Item, Result>,
  error: unknown,
): Promise<void> | undefined {
  const { sendAlone, sendOne, sendMany } = queue.kind
  const wasAlone = sendOne === undefined && sendMany === undefined
  if (!wasAlone && isRefusalOfRows(error)) return settleLater(queue, call, sendAlone(call.item))
  refuse(queue, call, error)
  return undefined
}

function refuse<Item, Result>({ calls }: BatchQueue<Item, Result>, call: Call<Item, Result>, error: unknown): void {
  close(calls, call)
  call.reject(error)
  if (call.followers === undefined) return
  const followers = takeFollowers(calls, call)
  calls.followers -= followers.length
  refuseAll(followers, neverSent(error))
}

function settle<Item, Result>(queue: BatchQueue<Item, Result>, call: Call<Item, Result>, result: Result): void {
  const { calls, kind } = queue
  close(calls, call)
  call.resolve(result)
  if (call.followers === undefined) return
  const apart: Call<Item, Result>[] = []
  for (const follower of takeFollowers(calls, call)) {
    if (kind.mayShare?.(result, call.item, follower.item) !== true) apart.push(follower)
    else {
      calls.followers -= 1
      follower.resolve(result)
    }
  }
  if (apart.length === 0) return
  requeue(calls, apart)
  if (queue.isUnderWay) watch(queue)
  else setImmediate(sendBatch, queue)
  queue.isUnderWay = true
}

/** The first call of a key is sent: where its answer cannot be shared, the next one waits for the next batch. */
function lead<Item, Result>(queue: BatchQueue<Item, Result>, call: Call<Item, Result>): void {
  if (queue.kind.mayShare !== undefined) queue.calls.leaders.add(call)
  else requeue(queue.calls, takeFollowers(queue.calls, call))
}

/** A batch that is not answered holds up the calls that wait for the next one: they are refused in time. */
function watch<Item, Result>(queue: BatchQueue<Item, Result>): void {
  if (queue.isWatched) return
  queue.isWatched = true
  const { calls, clock, limits } = queue
  clock.after(limits.waitMsMax / checksPerWait, () => {
    queue.isWatched = false
    refuseLate(calls)
    if (calls.waiting.size > 0 || calls.leaders.size > 0) watch(queue)
  })
}
