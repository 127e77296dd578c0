/**
 * What transactions of ours, and the senders of batches, may take of a pool. A handler that queries the pool instead of its `tx` needs a second connection
 * while it holds one: were all of them held by such handlers, none would ever end.
 */
import { systemClock } from '../../../ports/clock.ts'
import { LatchkeyError } from '../../../ports/errors.ts'
import { emptyList, values, type LinkedList, type ListNode, append, remove } from '../../../ports/linked-list.ts'
import type { PgPool } from '../driver.ts'

/** A caller that waits for longer is refused here, before the engine's limit (5 s) takes a full pool for a server that is down. */
const waitMsMax = 4_000
/** Few places are free by then, and what is looked for at the same time is one statement. */
const lookAfterMs = 10
/** Each is a caller that waits for its answer: as many as may wait for a concurrent duplicate. */
const waitingMax = 1_000
/** Claims and completions each have one connection of the usual ten. */
const poolPartKept = 4
const checkEveryMs = 1_000
/** Five checks, a second apart: a handler that works with its transaction sends its next query sooner. */
const idleChecksMax = 5

export interface PoolShare {
  /** Whether there was a free place, which is taken now. Every place is given back with `leave`. */
  tryEnter(): boolean
  /**
   * Waits for a place, and returns whether it has one. A caller that still waits after a few milliseconds calls `look`, at the same time
   * as others do: if that is true it needs no place any more, and if it fails the caller waits on. Rejects with `overloaded`.
   */
  enter(look: () => Promise<boolean>): Promise<boolean>
  leave(): void
  /** Whether a sender may keep a connection between its batches, which it does from now on. It ends with `unkeep`. */
  tryKeep(): boolean
  unkeep(): void
  /** Until it is stopped: calls `onIdle` once the transaction was idle for 5 s while others waited for the pool. */
  watch(transaction: { readonly isIdle: () => boolean; readonly onIdle: () => void }): () => void
}

interface WaitingCaller extends ListNode<WaitingCaller> {
  readonly enter: () => void
}

interface WatchedTransaction extends ListNode<WatchedTransaction> {
  readonly isIdle: () => boolean
  readonly onIdle: () => void
  idleChecks: number
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
  // A pool of one has none to spare: a handler that asks it for another leaves its transaction idle, and is rolled back.
  const placesMax = Math.max(1, sizeMax - 1)
  const waiting: LinkedList<WaitingCaller> = emptyList()
  const together = calledTogether(lookAfterMs)
  const keptMax = Math.max(1, Math.floor(sizeMax / poolPartKept))
  let taken = 0
  let kept = 0
  const tryEnter = () => {
    if (taken >= placesMax) return false
    taken += 1
    return true
  }
  return {
    tryEnter,
    enter: async look => tryEnter() || turn({ waiting, placesMax, together }, look),
    leave() {
      // The place is handed on: a caller that arrives now does not overtake those that wait.
      if (waiting.first === undefined) taken -= 1
      else waiting.first.enter()
    },
    tryKeep() {
      // Without it a sender would not see that others wait.
      if (kept >= keptMax || pool.waitingCount === undefined) return false
      kept += 1
      return true
    },
    unkeep: () => void (kept -= 1),
    watch: idleWatch(pool),
  }
}

interface Line {
  readonly waiting: LinkedList<WaitingCaller>
  readonly placesMax: number
  readonly together: (run: () => void) => void
}

function turn({ waiting, placesMax, together }: Line, look: () => Promise<boolean>): Promise<boolean> {
  const why = `${placesMax} transactions are open, the most that atomic work may take of this pool`
  if (waiting.length >= waitingMax) return Promise.reject(overloaded(`${why}, and ${waitingMax} wait for one to end`))
  return new Promise((resolve, reject) => {
    let isWaiting = true
    const leave = () => {
      isWaiting = false
      cancel()
      remove(waiting, place)
    }
    const cancel = systemClock.after(waitMsMax, () => {
      leave()
      reject(overloaded(`${why}, and none ended within ${waitMsMax} ms`))
    })
    const place: WaitingCaller = { before: undefined, next: undefined, enter: () => (leave(), resolve(true)) }
    append(waiting, place)
    together(() => {
      if (!isWaiting) return
      void look()
        // Who cannot be answered from its row waits on: the place may come, and its transaction sees the same fault or none.
        .catch(() => false)
        .then(isAnswered => {
          if (!isAnswered || !isWaiting) return
          leave()
          resolve(false)
        })
    })
  })
}

/** Calls what it is given with all else that it is given within `afterMs`. */
function calledTogether(afterMs: number): (run: () => void) => void {
  let runs: (() => void)[] = []
  return run => {
    runs.push(run)
    if (runs.length > 1) return
    systemClock.after(afterMs, () => {
      const due = runs
      runs = []
      for (const one of due) one()
    })
  }
}

function overloaded(message: string): LatchkeyError {
  return new LatchkeyError('overloaded', `${message}: make the pool larger or the handlers shorter`)
}

function idleWatch(pool: PgPool): PoolShare['watch'] {
  const line: LinkedList<WatchedTransaction> = emptyList()
  let isChecking = false
  const check = () => {
    isChecking = line.length > 0
    if (isChecking) systemClock.after(checkEveryMs, check)
    const isPoolWaitedFor = (pool.waitingCount ?? 0) > 0
    for (const open of values(line)) {
      open.idleChecks = open.isIdle() && isPoolWaitedFor ? open.idleChecks + 1 : 0
      if (open.idleChecks >= idleChecksMax) open.onIdle()
    }
  }
  return ({ isIdle, onIdle }) => {
    const open: WatchedTransaction = { before: undefined, next: undefined, isIdle, onIdle, idleChecks: 0 }
    append(line, open)
    if (!isChecking) {
      isChecking = true
      systemClock.after(checkEveryMs, check)
    }
    return () => remove(line, open)
  }
}
