/** Latchkey's background work in each application process, at short intervals: a run takes minutes, not days. */
import type { Latchkey } from 'latchkey'
import { httpTarget } from 'latchkey/outbox'
import type { Reconciler } from 'latchkey/reconcile'
import { createWorkers } from 'latchkey/workers'

export interface WorkersArgument {
  readonly receiptsUrl: string
  readonly reconcile: Reconciler
}

export function startWorkers<Tx, C>(
  latchkey: Latchkey<Tx, C>,
  { receiptsUrl, reconcile }: WorkersArgument,
): { stop(): Promise<unknown> } {
  const workers = createWorkers(latchkey, {
    sweeper: { everyMs: 1_000 },
    resumer: { everyMs: 1_000 },
    reconciler: { use: reconcile, everyMs: 1_000 },
    reaper: { everyMs: 5_000 },
    relay: {
      targets: { receipts: httpTarget({ url: receiptsUrl, timeoutMs: 1_000 }) },
      leaseMs: 2_500,
      timeoutMs: 1_500,
      batch: 20,
      backoffMs: 200,
      backoffMsMax: 2_000,
    },
  })
  workers.start()
  return { stop: () => workers.drain() }
}
