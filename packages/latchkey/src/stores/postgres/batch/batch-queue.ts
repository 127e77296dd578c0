/**
 * Calls of one kind that wait to be sent. Calls with one key are never sent together. Where the kind allows it, those that arrive while
 * the first of them still waits follow it, and its answer is theirs: a thousand callers of one key are one call. They were never sent,
 * so they are never in doubt.
 */
import type { Clock } from '../../../ports/clock.ts'
import { isLatchkeyError, LatchkeyError } from '../../../ports/errors.ts'
import type { Observed } from '../../shared/observed.ts'

export interface QueueLimits {
  /** The most calls in one batch. */
  readonly sizeMax: number
  /**
   * The most calls that are open, from their arrival to their answer; the next one is refused at once. Followers do not count. One
   * scope never has more of them than it leaves free, so that a flood of one tenant leaves room for the others.
   */
  readonly openMax: number
  /** The most calls that follow another of their key. One key never has more of them than it leaves free. */
  readonly followersMax: number
  /** A call that has waited longer is refused before it is sent. */
  readonly waitMsMax: number
  /** A follower is refused when the call that it follows has no answer by then. */
  readonly shareMsMax: number
}

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
  /** Observes the batches. Absent: they are not observed. */
  readonly observed?: Observed
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

interface WaitingOptions<Item> {
  /** What is refused, in messages. */
  readonly name: string
  readonly keyOf: (item: Item) => string
  /** Absent: the kind of call does not name its scope. */
  readonly scopeOf?: ((item: Item) => string) | undefined
  readonly limits: QueueLimits
  readonly clock: Clock
}

export interface Call<Item, Result> {
  readonly item: Item
  readonly sinceMs: number
  resolve: (result: Result) => void
  reject: (error: unknown) => void
  /** The calls with its key that arrived while it waited. */
  followers: Call<Item, Result>[] | undefined
}

/** By key, in the order of arrival, bounded in number and in time. */
export interface WaitingCalls<Item, Result> {
  readonly options: WaitingOptions<Item>
  /** A new map for each batch: one that many join and leave is replaced again and again, and its former tables grow old. */
  waiting: Map<string, Call<Item, Result>>
  /** Sent, with followers that may share the answer. */
  readonly leaders: Set<Call<Item, Result>>
  /** From their arrival to their answer, without followers. */
  open: number
  readonly openOf: Map<string, number>
  /** How many calls follow another. */
  followers: number
}

function waitingCalls<Item, Result>(options: WaitingOptions<Item>): WaitingCalls<Item, Result> {
  return { options, waiting: new Map(), leaders: new Set(), open: 0, openOf: new Map(), followers: 0 }
}

/** Returns why there is no room for it. */
function enter<Item, Result>(calls: WaitingCalls<Item, Result>, call: Call<Item, Result>): LatchkeyError | undefined {
  const { name, keyOf, limits } = calls.options
  const key = keyOf(call.item)
  const first = calls.waiting.get(key)
  if (first === undefined) {
    if (isFull(calls, call)) return overloaded(`${calls.open} calls of ${name} are already open`)
    open(calls, call)
    calls.waiting.set(key, call)
    return undefined
  }
  const followers = (first.followers ??= [])
  if (followers.length >= limits.followersMax - calls.followers) {
    return overloaded(`${followers.length} calls of ${name} wait for the answer to one key`)
  }
  calls.followers += 1
  followers.push(call)
  return undefined
}

function isFull<Item, Result>(
  { options, openOf, open: all }: WaitingCalls<Item, Result>,
  { item }: Call<Item, Result>,
): boolean {
  const left = options.limits.openMax - all
  const own = options.scopeOf === undefined ? 0 : (openOf.get(options.scopeOf(item)) ?? 0)
  return own >= left
}

function open<Item, Result>(calls: WaitingCalls<Item, Result>, { item }: Call<Item, Result>): void {
  calls.open += 1
  const scope = calls.options.scopeOf?.(item)
  if (scope !== undefined) calls.openOf.set(scope, (calls.openOf.get(scope) ?? 0) + 1)
}

/** The call has its answer, or was refused. */
function close<Item, Result>(calls: WaitingCalls<Item, Result>, { item }: Call<Item, Result>): void {
  calls.open -= 1
  const scope = calls.options.scopeOf?.(item)
  if (scope === undefined) return
  const left = (calls.openOf.get(scope) ?? 1) - 1
  if (left > 0) calls.openOf.set(scope, left)
  else calls.openOf.delete(scope)
}

/** Followers of one key that need an answer of their own: the first is sent next, unless a call with the key waits already. */
function requeue<Item, Result>(calls: WaitingCalls<Item, Result>, apart: readonly Call<Item, Result>[]): void {
  const [first, ...others] = apart
  if (first === undefined) return
  const key = calls.options.keyOf(first.item)
  const ahead = calls.waiting.get(key)
  if (ahead !== undefined) {
    ahead.followers = [...(ahead.followers ?? []), ...apart]
    return
  }
  open(calls, first)
  calls.followers -= 1
  first.followers = someOf(others)
  calls.waiting.set(key, first)
}

/** In the order of arrival. */
function takeBatch<Item, Result>(calls: WaitingCalls<Item, Result>, max: number): readonly Call<Item, Result>[] {
  const all = calls.waiting
  calls.waiting = new Map()
  if (all.size <= max) return [...all.values()]
  const batch: Call<Item, Result>[] = []
  for (const [key, call] of all) {
    if (batch.length < max) batch.push(call)
    else calls.waiting.set(key, call)
  }
  return batch
}

/** Refuses the calls that were not sent in time, and the followers of a call that has no answer. */
function refuseLate<Item, Result>(calls: WaitingCalls<Item, Result>): void {
  const { name, limits, clock } = calls.options
  const nowMs = clock.monotonicMs()
  const sentBy = nowMs - limits.waitMsMax
  for (const [key, first] of calls.waiting) {
    if (first.sinceMs < sentBy || first.followers !== undefined)
      refuseOfKey(calls, key, [first, ...(first.followers ?? [])])
  }
  for (const leader of calls.leaders) {
    const [late, others] = parted(leader.followers ?? [], nowMs - limits.shareMsMax)
    if (late.length === 0) continue
    leader.followers = others
    calls.followers -= late.length
    const cause = new LatchkeyError('store-unavailable', `no answer to ${name} within ${limits.shareMsMax} ms`)
    refuseAll(late, neverSent(cause))
  }
}

function refuseOfKey<Item, Result>(
  calls: WaitingCalls<Item, Result>,
  key: string,
  ofKey: readonly Call<Item, Result>[],
): void {
  const { name, limits, clock } = calls.options
  const [late, [next, ...others]] = parted(ofKey, clock.monotonicMs() - limits.waitMsMax)
  if (late.length === 0) return
  const ahead = calls.waiting.get(key)
  if (next === undefined) {
    if (ahead !== undefined) close(calls, ahead)
    calls.followers -= late.length - 1
    calls.waiting.delete(key)
  } else {
    calls.followers -= late.length
    next.followers = someOf(others)
    calls.waiting.set(key, next)
  }
  refuseAll(late, overloaded(`a call of ${name} waited ${limits.waitMsMax} ms for its turn and was not sent`))
}

function parted<Item, Result>(
  calls: readonly Call<Item, Result>[],
  sinceMs: number,
): [late: Call<Item, Result>[], others: Call<Item, Result>[]] {
  return [calls.filter(call => call.sinceMs < sinceMs), calls.filter(call => call.sinceMs >= sinceMs)]
}

function someOf<T>(values: T[]): T[] | undefined {
  return values.length === 0 ? undefined : values
}

function refuseAll<Item, Result>(calls: readonly Call<Item, Result>[], error: unknown): void {
  for (const call of calls) call.reject(error)
}

function overloaded(message: string): LatchkeyError {
  return new LatchkeyError('overloaded', message, { retryAfterMs: 1_000 })
}

/** For the followers of a call that failed. One error for all of them: they failed together. */
function neverSent(cause: unknown): unknown {
  if (isLatchkeyError(cause) && cause.code !== 'store-unavailable') return cause
  const message = cause instanceof Error ? cause.message : String(cause)
  return new LatchkeyError('store-unavailable', message, { cause, sent: false })
}

/** They follow it no longer. */
function takeFollowers<Item, Result>(
  calls: WaitingCalls<Item, Result>,
  call: Call<Item, Result>,
): readonly Call<Item, Result>[] {
  const followers = call.followers ?? []
  call.followers = undefined
  calls.leaders.delete(call)
  return followers
}
