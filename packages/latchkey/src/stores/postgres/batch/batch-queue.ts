/**
 * Calls of one kind that wait to be sent. Calls with one key are never sent together. Where the kind allows it, those that arrive while
 * the first of them still waits follow it, and its answer is theirs: a thousand callers of one key are one call. They were never sent,
 * so they are never in doubt.
 */
import type { Clock } from '../../../ports/clock.ts'
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
export interface QueuedCall<Item, Result> {
  /** What is refused, in messages. */
  readonly name: string
  readonly keyOf: (item: Item) => string
  /** A scope has its share of the open calls. Absent: the kind of call does not name its scope. */
  readonly scopeOf?: (item: Item) => string
  /** Whether the answer to `sent` is also one to `joined`, which arrived before it was sent. Absent: never. */
  readonly mayShare?: (result: Result, sent: Item, joined: Item) => boolean
  /** The statement that knows every state. */
  readonly sendAlone: (item: Item) => Promise<Result>
}

export interface QueueOptions {
  readonly limits: QueueLimits
  readonly clock: Clock
}

/** How often waiting calls are checked: a twentieth of the longest wait is soon enough, and rare enough for thousands. */
const checksPerWait = 20

export interface BatchQueue<Item, Result> extends QueueOptions {
  readonly kind: QueuedCall<Item, Result>
  readonly calls: WaitingCalls<Item, Result>
  /** Called when there is something to send. */
  readonly wake: () => void
  isWatched: boolean
}

export function batchQueue<Item, Result>(
  kind: QueuedCall<Item, Result>,
  { limits, clock }: QueueOptions,
  wake: () => void,
): BatchQueue<Item, Result> {
  return { kind, limits, clock, wake, calls: waitingCalls({ ...kind, limits, clock }), isWatched: false }
}

/** What callers call. */
export function askOf<Item, Result>(queue: BatchQueue<Item, Result>): (item: Item) => Promise<Result> {
  return item => {
    const sinceMs = queue.clock.monotonicMs()
    const call: Call<Item, Result> = { item, sinceMs, resolve: unset, reject: unset, followers: undefined }
    const answer = new Promise<Result>((resolve, reject) => {
      call.resolve = resolve
      call.reject = reject
    })
    const refusal = enter(queue.calls, call)
    if (refusal !== undefined) call.reject(refusal)
    else if (!queue.isWatched) watch(queue)
    queue.wake()
    return answer
  }
}

/** Until the promise of the call is there. */
function unset(): void {}

/** What is sent next, in the order of arrival. What can be sent now is sent, however long it has waited in this process. */
export function takeCalls<Item, Result>(queue: BatchQueue<Item, Result>, max: number): readonly Call<Item, Result>[] {
  const { calls, kind } = queue
  if (calls.waiting.size === 0) return []
  const batch = takeBatch(calls, max)
  refuseLate(calls)
  for (const call of batch) {
    if (call.followers === undefined) continue
    // Where its answer cannot be shared, the next call of its key is sent after it.
    if (kind.mayShare !== undefined) calls.leaders.add(call)
    else requeue(calls, takeFollowers(calls, call))
  }
  return batch
}

/** A call that is answered by a statement of its own is open until then, and holds up no other. */
export function settle<Item, Result>(
  queue: BatchQueue<Item, Result>,
  call: Call<Item, Result>,
  result: Result | Promise<Result>,
): void {
  if (!(result instanceof Promise)) return settleWith(queue, call, result)
  void result.then(
    later => settleWith(queue, call, later),
    (error: unknown) => refuse(queue, call, error),
  )
}

export function sendAlone<Item, Result>(queue: BatchQueue<Item, Result>, call: Call<Item, Result>): Promise<void> {
  return queue.kind.sendAlone(call.item).then(
    result => settleWith(queue, call, result),
    (error: unknown) => refuse(queue, call, error),
  )
}

export function refuse<Item, Result>(
  { calls }: BatchQueue<Item, Result>,
  call: Call<Item, Result>,
  error: unknown,
): void {
  close(calls, call)
  call.reject(error)
  if (call.followers === undefined) return
  const followers = takeFollowers(calls, call)
  calls.followers -= followers.length
  refuseAll(followers, neverSent(error))
}

function settleWith<Item, Result>(queue: BatchQueue<Item, Result>, call: Call<Item, Result>, result: Result): void {
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
  if (!queue.isWatched) watch(queue)
  queue.wake()
}

/** What is under way without an answer holds up the calls that wait: they are refused in time. */
function watch<Item, Result>(queue: BatchQueue<Item, Result>): void {
  queue.isWatched = true
  const { calls, clock, limits } = queue
  clock.after(limits.waitMsMax / checksPerWait, () => {
    queue.isWatched = false
    refuseLate(calls)
    if (calls.waiting.size > 0 || calls.leaders.size > 0) watch(queue)
  })
}
