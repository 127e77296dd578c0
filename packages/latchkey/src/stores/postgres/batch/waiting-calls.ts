/** The calls of a batch queue that wait to be sent: by key, in the order of arrival, bounded in number and in time. */
import type { Clock } from '../../../ports/clock.ts'
import { isLatchkeyError, LatchkeyError } from '../../../ports/errors.ts'

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

export interface WaitingOptions<Item> {
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

export function waitingCalls<Item, Result>(options: WaitingOptions<Item>): WaitingCalls<Item, Result> {
  return { options, waiting: new Map(), leaders: new Set(), open: 0, openOf: new Map(), followers: 0 }
}

/** Returns why there is no room for it. */
export function enter<Item, Result>(
  calls: WaitingCalls<Item, Result>,
  call: Call<Item, Result>,
): LatchkeyError | undefined {
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
export function close<Item, Result>(calls: WaitingCalls<Item, Result>, { item }: Call<Item, Result>): void {
  calls.open -= 1
  const scope = calls.options.scopeOf?.(item)
  if (scope === undefined) return
  const left = (calls.openOf.get(scope) ?? 1) - 1
  if (left > 0) calls.openOf.set(scope, left)
  else calls.openOf.delete(scope)
}

/** Followers of one key that need an answer of their own: the first is sent next, unless a call with the key waits already. */
export function requeue<Item, Result>(calls: WaitingCalls<Item, Result>, apart: readonly Call<Item, Result>[]): void {
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
export function takeBatch<Item, Result>(calls: WaitingCalls<Item, Result>, max: number): readonly Call<Item, Result>[] {
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
export function refuseLate<Item, Result>(calls: WaitingCalls<Item, Result>): void {
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

export function refuseAll<Item, Result>(calls: readonly Call<Item, Result>[], error: unknown): void {
  for (const call of calls) call.reject(error)
}

function overloaded(message: string): LatchkeyError {
  return new LatchkeyError('overloaded', message, { retryAfterMs: 1_000 })
}

/** For the followers of a call that failed. One error for all of them: they failed together. */
export function neverSent(cause: unknown): unknown {
  if (isLatchkeyError(cause) && cause.code !== 'store-unavailable') return cause
  const message = cause instanceof Error ? cause.message : String(cause)
  return new LatchkeyError('store-unavailable', message, { cause, sent: false })
}

/** They follow it no longer. */
export function takeFollowers<Item, Result>(
  calls: WaitingCalls<Item, Result>,
  call: Call<Item, Result>,
): readonly Call<Item, Result>[] {
  const followers = call.followers ?? []
  call.followers = undefined
  calls.leaders.delete(call)
  return followers
}
