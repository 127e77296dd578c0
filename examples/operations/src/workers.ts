import { functionTarget } from 'latchkey/outbox'
import { createWorkers, type Workers, type WorkersHost } from 'latchkey/workers'

export function workersOf<Tx>(latchkey: WorkersHost<Tx>): Workers {
  return createWorkers(latchkey, {
    only: ['sweeper', 'resumer', 'relay', 'reaper'],
    // Dead leases are resolved within this time.
    sweeper: { everyMs: 30_000, batch: 200 },
    // Rows at once. Raise it together with the pool.
    resumer: { everyMs: 2_000, concurrency: 4 },
    relay: {
      targets: { '*': functionTarget(async ({ topic, payload }) => console.log(topic, payload)) },
      // Messages of one commit: at most as many are repeated after a crash.
      batch: 100,
      concurrency: 8,
      leaseMs: 30_000,
      timeoutMs: 15_000,
      // After so many failures, or crashes on one message, it is parked.
      attemptsMax: 10,
      crashesMax: 3,
      backoffMs: 1_000,
      backoffMsMax: 300_000,
    },
    reaper: { batch: 1_000, pauseMs: 250, keepDeliveredMs: 86_400_000, keepReceivedMs: 7 * 86_400_000 },
  })
}
