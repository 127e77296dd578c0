/** Resolves leases whose owners died, by each row's recovery: within the lease and one sweep, as the sum of both. */
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
    telemetry.report(`the owner of a claim died: the row is ${to} now`, { operation, identity: id, detail: to })
  }
  return swept.length < batch ? 'idle' : 'more'
}
