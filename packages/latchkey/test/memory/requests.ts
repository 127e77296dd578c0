/** Requests to a store, as the engine makes them. */
import { identify } from '../../src/engine/request.ts'
import { systemClock } from '../../src/ports/clock.ts'
import type { AtomicRequest } from '../../src/ports/store.ts'

export function atomicRequest(key: string): AtomicRequest {
  return {
    identity: identify({ scope: 'acme', operation: 'orders.create', key }),
    claimId: systemClock.randomId(),
    fingerprint: new Uint8Array(32),
    retentionMs: 3_600_000,
    description: undefined,
  }
}
