/** Deletes what is past its retention, a batch at a time, with room for live traffic between two batches. */
import type { Outbox } from '../ports/outbox.ts'
import type { Store } from '../ports/store.ts'
import type { Telemetry } from '../ports/telemetry.ts'
import type { TurnResult } from './loop.ts'

export interface ReapOptions {
  readonly store: Pick<Store, 'reap'> & { readonly outbox: Pick<Outbox<unknown>, 'prune'> | undefined }
  readonly telemetry: Telemetry
  readonly batch: number
  readonly keepDeliveredMs: number
}

export async function reapOnce({ store, telemetry, batch, keepDeliveredMs }: ReapOptions): Promise<TurnResult> {
  const rows = await store.reap({ limit: batch })
  for (let n = 0; n < rows; n++) telemetry.count('ttl_pruned', { detail: 'keys' })
  const messages = (await store.outbox?.prune({ limit: batch, keepMs: keepDeliveredMs })) ?? 0
  for (let n = 0; n < messages; n++) telemetry.count('ttl_pruned', { detail: 'outbox' })
  return rows < batch && messages < batch ? 'idle' : 'more'
}
