/** Resolves expired leases by each row's recovery, at the latest one sweep after the lease ended. */
import type { Store } from '../ports/store.ts'
import type { Telemetry } from '../ports/telemetry.ts'
import type { TurnResult } from './loop.ts'

export interface SweepOptions {
  readonly store: Pick<Store, 'sweep'>
  readonly telemetry: Telemetry
  readonly batch: number
}

export async function sweepOnce({ store, telemetry, batch }: SweepOptions): Promise<TurnResult> {
  const swept = await store.sweep({ limit: batch })
  for (const { id, operation, to } of swept) {
    telemetry.count('zombie_key', { operation, identity: id, detail: to })
    telemetry.report(`lease expired: row moved to ${to}`, { operation, identity: id, detail: to })
  }
  return swept.length < batch ? 'idle' : 'more'
}
