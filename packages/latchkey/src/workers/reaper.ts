/** Deletes what is past its retention, a batch at a time, with a pause for live traffic between two batches. */
import type { AdminRecords } from '../ports/faculties/admin.ts'
import type { Outbox } from '../ports/outbox.ts'
import type { Reconciliation } from '../ports/reconciliation.ts'
import type { Store } from '../ports/store.ts'
import type { Telemetry } from '../ports/telemetry.ts'
import type { TurnResult } from './loop.ts'

export interface ReapOptions {
  readonly store: Pick<Store, 'reap'> & {
    readonly admin?: Pick<AdminRecords, 'prune'> | undefined
    readonly outbox?: Pick<Outbox<unknown>, 'prune'> | undefined
    readonly reconciliation?: Pick<Reconciliation, 'forgetDeliveries'> | undefined
  }
  readonly telemetry: Telemetry
  readonly batch: number
  readonly keepDeliveredMs: number
  readonly keepReceivedMs: number
}

export async function reapOnce(options: ReapOptions): Promise<TurnResult> {
  const { store, telemetry, batch, keepDeliveredMs, keepReceivedMs } = options
  const pruned = {
    keys: await store.reap({ limit: batch }),
    outbox: (await store.outbox?.prune({ limit: batch, keepMs: keepDeliveredMs })) ?? 0,
    webhooks: (await store.reconciliation?.forgetDeliveries({ limit: batch, olderThanMs: keepReceivedMs })) ?? 0,
    admin: (await store.admin?.prune({ limit: batch })) ?? 0,
  }
  for (const [detail, rows] of Object.entries(pruned)) {
    for (let n = 0; n < rows; n++) telemetry.count('ttl_pruned', { detail })
  }
  return Object.values(pruned).every(rows => rows < batch) ? 'idle' : 'more'
}
