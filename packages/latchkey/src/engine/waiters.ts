/** Requests that wait for a twin in this process or another: woken at once by the first, by polling for the second. */
import { type Clock, sleep } from '../ports/clock.ts'

export interface Waiters {
  /** Ends when woken or after `waitMs`; false at once when too many wait already. Holds no connection. */
  wait(id: string, waitMs: number): Promise<boolean>
  wake(id: string): void
  wakeAll(): void
}

/** More than this on one key is an accident or an attack; the rest get their 409 at once. */
const perKeyMax = 100
/** Bounds the memory of one process. */
const perProcessMax = 1_000

export function waiters(clock: Clock): Waiters {
  const byId = new Map<string, Set<AbortController>>()
  let total = 0

  function wake(id: string): void {
    for (const woken of byId.get(id) ?? []) woken.abort()
  }

  return {
    async wait(id, waitMs) {
      const group = byId.get(id) ?? new Set()
      if (total >= perProcessMax || group.size >= perKeyMax) return false
      const woken = new AbortController()
      total += 1
      byId.set(id, group.add(woken))
      await sleep(clock, waitMs, woken.signal)
      total -= 1
      group.delete(woken)
      if (group.size === 0) byId.delete(id)
      return true
    },
    wake,
    wakeAll() {
      for (const id of byId.keys()) wake(id)
    },
  }
}
