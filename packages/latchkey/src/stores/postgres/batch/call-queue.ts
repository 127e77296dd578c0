/** The calls of a gatherer that wait to be sent: by key, in the order of arrival, bounded in number and in time. */
import type { Clock } from '../../../ports/clock.ts'
import { isLatchkeyError, LatchkeyError } from '../../../ports/errors.ts'

export interface QueueLimits {
  /** The most calls in one batch. */
  readonly sizeMax: number
  /**
   * The most calls that are open, from their arrival to their answer; the next one is refused at once. Without those behind another. One
   * scope never has more of them than it leaves free, so that a flood of one tenant leaves room for the others.
   */
  readonly openMax: number
  /** The most calls behind others of their key. One key never has more of them than it leaves free. */
  readonly behindMax: number
  /** A call that has waited longer is refused before it is sent. */
  readonly waitMsMax: number
  /** One that shares the call of another is refused when that has no answer by then. */
  readonly shareMsMax: number
}

export interface QueueOptions<Item> {
  /** What is refused, in messages. */
  readonly name: string
  readonly keyOf: (item: Item) => string
  /** Whose call it is, where the call says so. */
  readonly scopeOf?: ((item: Item) => string) | undefined
  readonly limits: QueueLimits
  readonly clock: Clock
}

export interface Call<Item, Result> {
  readonly item: Item
  readonly sinceMs: number
  readonly resolve: (result: Result) => void
  readonly reject: (error: unknown) => void
  /** Those of its key that came while it waited. */
  behind: Call<Item, Result>[] | undefined
}

export interface CallQueue<Item, Result> {
  readonly options: QueueOptions<Item>
  /** A new map for each batch: one that many join and leave is replaced again and again, and its former tables grow old. */
  waiting: Map<string, Call<Item, Result>>
  /** Sent, with others behind it that may share its answer. */
  readonly leading: Set<Call<Item, Result>>
  /** From their arrival to their answer, without those behind another. */
  open: number
  readonly openOf: Map<string, number>
  behind: number
}

export function callQueue<Item, Result>(options: QueueOptions<Item>): CallQueue<Item, Result> {
  return { options, waiting: new Map(), leading: new Set(), open: 0, openOf: new Map(), behind: 0 }
}

/** Why there is no room for it. */
export function stand<Item, Result>(
  queue: CallQueue<Item, Result>,
  call: Call<Item, Result>,
): LatchkeyError | undefined {
  const { name, keyOf, limits } = queue.options
  const key = keyOf(call.item)
  const first = queue.waiting.get(key)
  if (first === undefined) {
    if (isFull(queue, call)) return overloaded(`${queue.open} calls of ${name} are already open`)
    open(queue, call)
    queue.waiting.set(key, call)
    return undefined
  }
  const others = (first.behind ??= [])
  if (others.length >= limits.behindMax - queue.behind) {
    return overloaded(`${others.length} calls of ${name} wait for the answer to one key`)
  }
  queue.behind += 1
  others.push(call)
  return undefined
}

function isFull<Item, Result>(
  { options, openOf, open: all }: CallQueue<Item, Result>,
  { item }: Call<Item, Result>,
): boolean {
  const left = options.limits.openMax - all
  const own = options.scopeOf === undefined ? 0 : (openOf.get(options.scopeOf(item)) ?? 0)
  return own >= left
}

function open<Item, Result>(queue: CallQueue<Item, Result>, { item }: Call<Item, Result>): void {
  queue.open += 1
  const scope = queue.options.scopeOf?.(item)
  if (scope !== undefined) queue.openOf.set(scope, (queue.openOf.get(scope) ?? 0) + 1)
}

/** It has its answer, or was refused. */
export function close<Item, Result>(queue: CallQueue<Item, Result>, { item }: Call<Item, Result>): void {
  queue.open -= 1
  const scope = queue.options.scopeOf?.(item)
  if (scope === undefined) return
  const left = (queue.openOf.get(scope) ?? 1) - 1
  if (left > 0) queue.openOf.set(scope, left)
  else queue.openOf.delete(scope)
}

/** Calls of one key that were behind another: the first of them is the next to be sent, unless one of the key waits already. */
export function standAgain<Item, Result>(queue: CallQueue<Item, Result>, calls: readonly Call<Item, Result>[]): void {
  const [first, ...others] = calls
  if (first === undefined) return
  const key = queue.options.keyOf(first.item)
  const ahead = queue.waiting.get(key)
  if (ahead !== undefined) {
    ahead.behind = [...(ahead.behind ?? []), ...calls]
    return
  }
  open(queue, first)
  queue.behind -= 1
  first.behind = someOf(others)
  queue.waiting.set(key, first)
}

/** In the order of arrival. */
export function takeBatch<Item, Result>(queue: CallQueue<Item, Result>): readonly Call<Item, Result>[] {
  const all = queue.waiting
  const { sizeMax } = queue.options.limits
  queue.waiting = new Map()
  if (all.size <= sizeMax) return [...all.values()]
  const batch: Call<Item, Result>[] = []
  for (const [key, call] of all) {
    if (batch.length < sizeMax) batch.push(call)
    else queue.waiting.set(key, call)
  }
  return batch
}

/** Those who were not sent in time, and those who share the call of another that has no answer. */
export function refuseLate<Item, Result>(queue: CallQueue<Item, Result>): void {
  const { name, limits, clock } = queue.options
  const nowMs = clock.monotonicMs()
  const sentBy = nowMs - limits.waitMsMax
  for (const [key, first] of queue.waiting) {
    if (first.sinceMs < sentBy || first.behind !== undefined) refuseOfKey(queue, key, [first, ...(first.behind ?? [])])
  }
  for (const leader of queue.leading) {
    const [late, others] = parted(leader.behind ?? [], nowMs - limits.shareMsMax)
    if (late.length === 0) continue
    leader.behind = others
    queue.behind -= late.length
    const cause = new LatchkeyError('store-unavailable', `no answer to ${name} within ${limits.shareMsMax} ms`)
    refuseAll(late, neverSent(cause))
  }
}

function refuseOfKey<Item, Result>(
  queue: CallQueue<Item, Result>,
  key: string,
  calls: readonly Call<Item, Result>[],
): void {
  const { name, limits, clock } = queue.options
  const [late, [next, ...others]] = parted(calls, clock.monotonicMs() - limits.waitMsMax)
  if (late.length === 0) return
  const ahead = queue.waiting.get(key)
  if (next === undefined) {
    if (ahead !== undefined) close(queue, ahead)
    queue.behind -= late.length - 1
    queue.waiting.delete(key)
  } else {
    queue.behind -= late.length
    next.behind = someOf(others)
    queue.waiting.set(key, next)
  }
  refuseAll(late, overloaded(`a call of ${name} waited ${limits.waitMsMax} ms for its turn and was not sent`))
}

type Calls<Item, Result> = Call<Item, Result>[]

function parted<Item, Result>(
  calls: readonly Call<Item, Result>[],
  sinceMs: number,
): [late: Calls<Item, Result>, others: Calls<Item, Result>] {
  return [calls.filter(call => call.sinceMs < sinceMs), calls.filter(call => call.sinceMs >= sinceMs)]
}

function someOf<T>(values: T[]): T[] | undefined {
  return values.length === 0 ? undefined : values
}

export function refuseAll<Item, Result>(calls: readonly Call<Item, Result>[], error: unknown): void {
  for (const call of calls) call.reject(error)
}

function overloaded(message: string): LatchkeyError {
  return new LatchkeyError('overloaded', message, { retryAfterMs: 1_000 })
}

/** For those who shared a call that failed. One error for all of them: they failed together. */
export function neverSent(cause: unknown): unknown {
  if (isLatchkeyError(cause) && cause.code !== 'store-unavailable') return cause
  const message = cause instanceof Error ? cause.message : String(cause)
  return new LatchkeyError('store-unavailable', message, { cause, sent: false })
}
