/** Gets the waits inside a store. Undefined: nothing is measured. */
import { systemClock } from '../../ports/clock.ts'
import type { StoreObserver } from '../../ports/store-observer.ts'

export interface Observed {
  observer: StoreObserver | undefined
}

/** A wait for a connection begins; what is returned ends it. Undefined: not observed. */
export function connectionWait({ observer }: Observed): (() => void) | undefined {
  if (observer === undefined) return undefined
  const sinceMs = systemClock.monotonicMs()
  return () => observer.connection(systemClock.monotonicMs() - sinceMs)
}
