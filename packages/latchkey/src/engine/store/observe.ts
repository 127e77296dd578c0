/** Passes what a store reports about its inside on to the telemetry, if that listens. */
import type { Store } from '../../ports/store.ts'
import { isObserved, type Telemetry } from '../../ports/telemetry.ts'

export function observeStore(store: Pick<Store, 'name' | 'observe'>, telemetry: Telemetry): void {
  if (store.observe === undefined || !isObserved(telemetry)) return
  // One object for all that it ever tells.
  const about = { detail: store.name }
  store.observe({
    batch(size, waitedMs) {
      telemetry.observe('batch.size', size, about)
      telemetry.observe('batch.wait', waitedMs, about)
    },
    connection: waitedMs => telemetry.observe('pool.wait', waitedMs, about),
    lockTimeout: () => telemetry.count('lock_timeout', about),
    failover: () => telemetry.count('store.failover', about),
  })
}
