// steadykey's execute(): like Latchkey, it stores the answer before it gives it. (Its middleware stores afterwards.)
import { IdempotencyCollisionError, IdempotencyInProgressError, IdempotencyManager } from 'steadykey'

export function steadykeyPeer(store, stored) {
  const manager = new IdempotencyManager(store, { keyPrefix: 'bench', defaultTtlSeconds: 86_400 })
  return {
    kind: 'plain',
    async run({ key, body }, handle) {
      try {
        const { value } = await manager.execute(body, handle, { idempotencyKey: key, inFlight: 'fail-fast' })
        return { receipt: value }
      } catch (error) {
        if (error instanceof IdempotencyInProgressError) return { status: 409 }
        if (error instanceof IdempotencyCollisionError) return { status: 422 }
        throw error
      }
    },
    stored,
  }
}
