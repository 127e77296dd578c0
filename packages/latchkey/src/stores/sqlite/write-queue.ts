/**
 * SQLite has one writer. Inside a process the writers stand in this queue instead of meeting each other's locks: first
 * come, first served, nobody blocks the event loop, and nobody writes inside another's open transaction.
 */
import type { Clock } from '../../ports/clock.ts'
import { unavailable } from './failure.ts'

export interface WriteQueue {
  /** Waits for the turn, at most `limitMs`. The function it gives ends the turn; calling it again does nothing. */
  enter(limitMs: number): Promise<() => void>
  /** Turns away everybody who waits and everybody who comes; whoever has the turn may finish, at most `limitMs`. */
  close(limitMs: number): Promise<void>
}

interface Waiter {
  admit(): void
  refuse(reason: string): void
}

export function writeQueue({ clock, waitersMax }: { clock: Clock; waitersMax: number }): WriteQueue {
  const waiters = new Set<Waiter>()
  let taken = false
  let closed = false

  const next = () => {
    const [waiter] = waiters
    if (waiter === undefined) taken = false
    else waiter.admit()
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
  const wait = (limitMs: number) =>
    new Promise<() => void>((resolve, reject) => {
      const leave = () => {
        cancel()
        waiters.delete(waiter)
      }
      const waiter: Waiter = {
        admit: () => (leave(), resolve(turn())),
        refuse: reason => (leave(), reject(unavailable(reason))),
      }
      const cancel = clock.after(limitMs, () => waiter.refuse(waitedTooLong(limitMs)))
      waiters.add(waiter)
    })

  return {
    async enter(limitMs) {
      if (closed) throw unavailable('the SQLite store is closed')
      if (waiters.size >= waitersMax) throw unavailable(`${waitersMax} writes wait for the SQLite file already`)
      if (taken) return wait(limitMs)
      taken = true
      return turn()
    },
    async close(limitMs) {
      closed = true
      for (const waiter of waiters) waiter.refuse('the SQLite store was closed while this write waited')
      if (taken) await wait(limitMs).catch(() => undefined)
    },
  }
}

function waitedTooLong(limitMs: number): string {
  return (
    `nothing was written: after ${limitMs} ms another write of this process still held the SQLite file. ` +
    'An atomic handler must not wait for other operations on the same store, nor run longer than it has to'
  )
}
