/**
 * SQLite has one writer. Inside a process the writers stand in this queue instead of meeting each other's locks: first come, first
 * served. None of them blocks the event loop, and none writes inside another's open transaction.
 */
import type { Clock } from '../../../ports/clock.ts'
import { overloaded, unavailable } from './errors.ts'
import { values, type LinkedList, type ListNode, append, remove } from '../../../ports/linked-list.ts'

interface Waiter {
  failed(error: unknown): void
}

/** `Write`: a write so short that the writer whose turn it is may take it along. */
export interface WriteQueue<Write extends Waiter> {
  /** Waits for the turn, at most `limitMs`. The function it gives ends the turn; calling it again does nothing. */
  enter(limitMs: number): Promise<() => void>
  /** Stands in the queue, at most `limitMs`, until it may lead, is taken along, or has failed. */
  join(write: Write, limitMs: number): void
  /** Refuses every writer that waits or comes later; the one whose turn it is may finish, within `limitMs`. */
  close(limitMs: number): Promise<void>
}

interface Place<Write extends Waiter> extends ListNode<Place<Write>> {
  readonly waiter: Write | LongTurn
  cancel: () => void
}

interface LongTurn extends Waiter {
  begin(done: () => void): void
}

export interface QueueOptions<Write> {
  readonly clock: Clock
  readonly waitersMax: number
  /** Called before each turn: what it adds to the queue shares the turn. */
  readonly beforeTurn?: () => void
  /**
   * The turn of a short write has come; `done` ends it. `others` are the short writes that wait, also those behind a longer turn: taken
   * along, they cost it no sync. Each leaves the queue as it is iterated over; the others keep their places.
   */
  readonly lead: (write: Write, others: Iterable<Write>, done: () => void) => void
}

export function writeQueue<Write extends Waiter>(options: QueueOptions<Write>): WriteQueue<Write> {
  const { clock, waitersMax, beforeTurn = () => {}, lead } = options
  const line: LinkedList<Place<Write>> = { first: undefined, last: undefined, length: 0 }
  let taken = false
  let closed = false

  const leave = (place: Place<Write>) => {
    place.cancel()
    remove(line, place)
  }
  const refuse = (place: Place<Write>, error: Error) => {
    leave(place)
    place.waiter.failed(error)
  }
  const next = () => {
    beforeTurn()
    const place = line.first
    if (place === undefined) return void (taken = false)
    leave(place)
    const { waiter } = place
    if (isLongTurn(waiter)) waiter.begin(turn())
    else lead(waiter, takeWrites(line, leave), turn())
  }
  const turn = () => {
    let over = false
    return () => {
      if (over) return
      over = true
      // Not at once: sockets and timers get their time between two writes, each of which waits for the disk.
      setImmediate(next)
    }
  }
  const stand = (waiter: Write | LongTurn, limitMs: number) => {
    const place: Place<Write> = { waiter, cancel: () => {}, before: undefined, next: undefined }
    place.cancel = clock.after(limitMs, () => refuse(place, overloaded(waitedTooLong(limitMs))))
    append(line, place)
  }
  const wait = (limitMs: number) =>
    new Promise<() => void>((resolve, reject) => stand({ begin: resolve, failed: reject }, limitMs))
  const refusal = () => {
    if (closed) return unavailable('the SQLite store is closed')
    return line.length >= waitersMax ? noRoom(waitersMax) : undefined
  }

  return {
    async enter(limitMs) {
      const error = refusal()
      if (error !== undefined) throw error
      if (taken) return wait(limitMs)
      taken = true
      return turn()
    },
    join(write, limitMs) {
      const error = refusal()
      if (error !== undefined) return write.failed(error)
      stand(write, limitMs)
      // Not at once, though the turn is free: what else comes in this turn of the event loop shares the sync.
      if (!taken) setImmediate(next)
      taken = true
    },
    async close(limitMs) {
      closed = true
      for (const place of values(line)) refuse(place, closedMeanwhile())
      if (taken) await wait(limitMs).catch(() => undefined)
    },
  }
}

function* takeWrites<Write extends Waiter>(
  line: LinkedList<Place<Write>>,
  leave: (place: Place<Write>) => void,
): Iterable<Write> {
  for (const place of values(line)) {
    const { waiter } = place
    if (isLongTurn(waiter)) continue
    leave(place)
    yield waiter
  }
}

function isLongTurn(waiter: Waiter): waiter is LongTurn {
  return 'begin' in waiter
}

function closedMeanwhile(): Error {
  return unavailable('the SQLite store was closed while this write waited')
}

function noRoom(waitersMax: number): Error {
  return overloaded(`${waitersMax} writes wait for the SQLite file already`)
}

function waitedTooLong(limitMs: number): string {
  return (
    `nothing was written: after ${limitMs} ms another write of this process still held the SQLite file. ` +
    'An atomic handler must not wait for other operations on the same store, nor run longer than it has to'
  )
}
