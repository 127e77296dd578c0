/**
 * What transactions of ours may take of a pool. A handler that queries the pool instead of its `tx` needs a second connection
 * while it holds one: were all of them held by such handlers, none would ever end.
 */
import { systemClock } from '../../../ports/clock.ts'
import { LatchkeyError } from '../../../ports/errors.ts'
import { emptyList, values, type LinkedList, type ListNode, append, remove } from '../../../ports/linked-list.ts'
import type { PgPool } from '../driver.ts'

/** Who waits for longer is answered by us, before the limit of the engine (5 s) takes a full pool for a server that is down. */
const waitMsMax = 4_000
/** Each is a caller that waits for its answer: as many as may wait for a duplicate. */
const waitingMax = 1_000
const lookEveryMs = 1_000
/** Five looks, a second apart: no query of a handler that works with its transaction is that long in coming. */
const idleLooksMax = 5

export interface PoolShare {
  /** Whether there was a free place, which is taken now. Every place is given back with `leave`. */
  tryEnter(): boolean
  /** Waits for a place. Rejects with `overloaded`. */
  enter(): Promise<void>
  leave(): void
  /** Calls `onIdle` once when the transaction stood still for 5 s while others waited for the pool, until it is stopped. */
  watch(transaction: { readonly isIdle: () => boolean; readonly onIdle: () => void }): () => void
}

interface Waiting extends ListNode<Waiting> {
  readonly enter: () => void
}

interface Open extends ListNode<Open> {
  readonly isIdle: () => boolean
  readonly onIdle: () => void
  idleLooks: number
}

/** Several stores may share a pool. */
const shares = new WeakMap<PgPool, PoolShare>()

export function shareOf(pool: PgPool): PoolShare {
  const share = shares.get(pool) ?? poolShare(pool)
  shares.set(pool, share)
  return share
}

function poolShare(pool: PgPool): PoolShare {
  const sizeMax = pool.options?.max ?? Infinity
  // A pool of one has none to spare: then a handler that asks it for another is the idle one, and rolled back.
  const placesMax = Math.max(1, sizeMax - 1)
  const waiting: LinkedList<Waiting> = emptyList()
  let taken = 0
  const tryEnter = () => {
    if (taken >= placesMax) return false
    taken += 1
    return true
  }
  return {
    tryEnter,
    enter: async () => {
      if (!tryEnter()) await turn(waiting, placesMax)
    },
    leave() {
      // The place goes from hand to hand: nobody who comes now is before those who wait.
      if (waiting.first === undefined) taken -= 1
      else waiting.first.enter()
    },
    watch: idleWatch(pool),
  }
}

function turn(line: LinkedList<Waiting>, placesMax: number): Promise<void> {
  const why = `${placesMax} transactions are open, which is what atomic work may take of this pool`
  if (line.length >= waitingMax) return Promise.reject(overloaded(`${why}, and ${waitingMax} wait for one to end`))
  return new Promise((resolve, reject) => {
    const leave = () => {
      cancel()
      remove(line, place)
    }
    const cancel = systemClock.after(waitMsMax, () => {
      leave()
      reject(overloaded(`${why}, and none ended within ${waitMsMax} ms`))
    })
    const place: Waiting = { before: undefined, next: undefined, enter: () => (leave(), resolve()) }
    append(line, place)
  })
}

function overloaded(message: string): LatchkeyError {
  return new LatchkeyError('overloaded', `${message}: make the pool larger or the handlers shorter`)
}

function idleWatch(pool: PgPool): PoolShare['watch'] {
  const line: LinkedList<Open> = emptyList()
  let isLooking = false
  const look = () => {
    isLooking = line.length > 0
    if (isLooking) systemClock.after(lookEveryMs, look)
    const someoneWaits = (pool.waitingCount ?? 0) > 0
    for (const open of values(line)) {
      open.idleLooks = open.isIdle() && someoneWaits ? open.idleLooks + 1 : 0
      if (open.idleLooks >= idleLooksMax) open.onIdle()
    }
  }
  return ({ isIdle, onIdle }) => {
    const open: Open = { before: undefined, next: undefined, isIdle, onIdle, idleLooks: 0 }
    append(line, open)
    if (!isLooking) {
      isLooking = true
      systemClock.after(lookEveryMs, look)
    }
    return () => remove(line, open)
  }
}
