/** Requests that wait for a twin in this process or another: woken at once by the first, by polling for the second. */
import { type Clock, sleep } from '../../ports/clock.ts'
import type { Identity } from '../../ports/store.ts'

export interface Waiters {
  /** Ends when woken or after `waitMs`; false at once when too many wait already. Holds no connection. */
  wait(twin: Pick<Identity, 'id' | 'scope'>, waitMs: number): Promise<boolean>
  wake(id: string): void
  wakeAll(): void
}

/** More than this on one key is an accident or an attack; the rest get their 409 at once. */
const perKeyMax = 100
/**
 * Bounds the memory of one process. A scope never holds more of it than it leaves free: half where it is alone, a third each
 * where two crowd in, and there is always room for one more tenant.
 */
const perProcessMax = 1_000

export function waiters(clock: Clock): Waiters {
  const byId = new Map<string, Set<AbortController>>()
  const heldBy = new Map<string, number>()
  let total = 0

  function hold(scope: string, change: 1 | -1): void {
    const held = (heldBy.get(scope) ?? 0) + change
    total += change
    if (held === 0) heldBy.delete(scope)
    else heldBy.set(scope, held)
  }

  function wake(id: string): void {
    for (const woken of byId.get(id) ?? []) woken.abort()
  }

  return {
    async wait({ id, scope }, waitMs) {
      const group = byId.get(id) ?? new Set()
      const held = heldBy.get(scope) ?? 0
      if (held >= perProcessMax - total || group.size >= perKeyMax) return false
      const woken = new AbortController()
      hold(scope, 1)
      byId.set(id, group.add(woken))
      await sleep(clock, waitMs, woken.signal)
      hold(scope, -1)
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
