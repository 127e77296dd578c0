/** Latchkey's background work in each application process, at short intervals: a run takes minutes, not days. */
import { httpTarget } from 'latchkey/outbox'
import type { Reconciler } from 'latchkey/reconcile'
import { createWorkers, type WorkersHost, type WorkersOptions } from 'latchkey/workers'

export interface WorkersArgument {
  /** Undefined: the store has no outbox. */
  readonly receiptsUrl: string | undefined
  readonly reconcile: Reconciler
}

export function startWorkers(
  latchkey: WorkersHost<unknown>,
  { receiptsUrl, reconcile }: WorkersArgument,
): { stop(): Promise<unknown> } {
  const workers = createWorkers(latchkey, {
    sweeper: { everyMs: 1_000 },
    resumer: { everyMs: 1_000 },
    reconciler: { use: reconcile, everyMs: 1_000 },
    reaper: { everyMs: 5_000 },
    ...(receiptsUrl === undefined ? {} : { relay: relayTo(receiptsUrl) }),
  })
  workers.start()
  return { stop: () => workers.drain() }
}

function relayTo(url: string): NonNullable<WorkersOptions['relay']> {
  return {
    targets: { receipts: httpTarget({ url, timeoutMs: 1_000 }) },
    leaseMs: 2_500,
    timeoutMs: 1_500,
    batch: 20,
    backoffMs: 200,
    backoffMsMax: 2_000,
  }
}
