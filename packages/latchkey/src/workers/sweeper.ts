/** Resolves expired leases by each row's recovery, at the latest one sweep after the lease ended. */
import type { Store } from '../ports/store.ts'
import { isObserved, type Telemetry } from '../ports/telemetry.ts'
import type { TurnResult } from './loop.ts'

export interface SweepOptions {
  readonly store: Pick<Store, 'sweep' | 'list' | 'inbox'>
  readonly telemetry: Telemetry
  readonly batch: number
}

export async function sweepOnce({ store, telemetry, batch }: SweepOptions): Promise<TurnResult> {
  const swept = await store.sweep({ limit: batch })
  for (const { id, operation, to } of swept) {
    telemetry.count('zombie_key', { operation, identity: id, detail: to })
    telemetry.report(`lease expired: row moved to ${to}`, { operation, identity: id, detail: to })
  }
  if (swept.length >= batch) return 'more'
  await observeParked(store, telemetry)
  return 'idle'
}

/** There should be none: whether there are few or many is enough. */
const parkedCountMax = 200

async function observeParked(store: SweepOptions['store'], telemetry: Telemetry): Promise<void> {
  if (!isObserved(telemetry)) return
  const { records } = await store.list({ parked: true, limit: parkedCountMax })
  telemetry.observe('parked.rows', records.length, {})
  // A role that consumes no messages may have no right on them, and sweeps all the same.
  const waiting = await store.inbox?.waiting().catch(() => undefined)
  if (waiting !== undefined) telemetry.observe('inbox.parked', waiting, {})
}
