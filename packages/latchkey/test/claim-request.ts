/** A claim of a key that nobody has used before. */
import { randomUUID } from 'node:crypto'
import type { ClaimRequest } from '../src/ports/store.ts'

export function claimRequest(over: Partial<ClaimRequest> = {}): ClaimRequest {
  return {
    identity: { id: randomUUID(), scope: 'tenant', operation: 'payments.create' },
    claimId: randomUUID(),
    fingerprint: Buffer.from('same'),
    recovery: 'hold',
    leaseMs: 30_000,
    expiresInMs: 25 * 3_600_000,
    description: undefined,
    ...over,
  }
}
