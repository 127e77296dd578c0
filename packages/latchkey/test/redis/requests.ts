/** What the tests of the Redis store ask of it. */
import { createHash, randomUUID } from 'node:crypto'
import { uuidText } from '../../src/ports/clock.ts'
import type { Outcome } from '../../src/ports/outcome.ts'
import type { Claim, ClaimRequest, Store } from '../../src/ports/store.ts'

export const hourMs = 3_600_000

export function claimRequest(key: string, over: Partial<ClaimRequest> = {}): ClaimRequest {
  const id = uuidText(createHash('sha256').update(`key ${key}`).digest())
  return {
    identity: { id, scope: 'tenant', operation: 'payments.create' },
    claimId: randomUUID(),
    // As long as those of the engine.
    fingerprint: Buffer.alloc(27, 'v2 asked'),
    recovery: 'hold',
    leaseMs: 60_000,
    expiresInMs: 24 * hourMs,
    description: undefined,
    ...over,
  }
}

export function outcome(text: string): Outcome {
  return { status: 201, headers: [['content-type', 'text/plain']], body: Buffer.from(text), version: 1 }
}

export async function own(store: Store, key: string, over: Partial<ClaimRequest> = {}): Promise<Claim> {
  const result = await store.claim(claimRequest(key, over))
  if (result.kind !== 'won') throw new Error(`${key} is taken: ${result.record.state}`)
  return result.claim
}
