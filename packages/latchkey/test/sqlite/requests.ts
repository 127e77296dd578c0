/** Requests to a store, as the engine would make them. */
import { randomUUID } from 'node:crypto'
import type { AtomicRequest, ClaimRequest, Identity } from '../../src/ports/store.ts'
import type { Outcome } from '../../src/ports/outcome.ts'

export const hourMs = 3_600_000

export function identity(key: number): Identity {
  return { id: `00000000-0000-4000-8000-${String(key).padStart(12, '0')}`, scope: 'tenant', operation: 'orders.create' }
}

const fingerprint = Buffer.from('v1 asked')

export function claimRequest(key: number): ClaimRequest {
  return {
    ...{ identity: identity(key), claimId: randomUUID(), fingerprint, description: undefined },
    ...{ recovery: 'hold', leaseMs: hourMs, expiresInMs: 24 * hourMs },
  }
}

export function atomicRequest(key: number): AtomicRequest {
  return {
    ...{ identity: identity(key), claimId: randomUUID(), fingerprint, description: undefined },
    retentionMs: 24 * hourMs,
  }
}

export function outcome(body: string | Uint8Array): Outcome {
  return { status: 201, headers: [['Content-Type', 'text/plain']], body: Buffer.from(body), version: 1 }
}
