/** A store with one parked message, and others of its aggregate. */
import { vi } from 'vitest'
import type { NewMessage, Store } from '../../src/index.ts'

export function messageOf(aggregate: string, dedupId: string): NewMessage {
  return { topic: 'orders', aggregate, dedupId, payload: Buffer.from('{}'), headers: {} }
}

export async function appendAll<Tx>({ outbox, transactor }: Store<Tx>, messages: readonly NewMessage[]): Promise<void> {
  await transactor?.transaction(async own => {
    const tx = await transactor.adopt(own)
    for (const message of messages) await outbox?.append(tx, message)
    return 'commit'
  })
}

/** The position of `a1`, which its consumer has refused; or of the first one of another aggregate. */
export async function parkOne<Tx>(store: Store<Tx>, aggregate = 'a'): Promise<string> {
  const { outbox } = store
  if (outbox === undefined) throw new Error(`the ${store.name} store has no outbox`)
  await appendAll(store, [messageOf(aggregate, `${aggregate}1`)])
  // Transactions of other suites on the same server may hold the message back for a moment.
  const lease = await vi.waitUntil(() => outbox.leaseLane({ leaseId: 'parks', leaseMs: 60_000 }), 30_000)
  const batch = await outbox.next(lease, { limit: 10 })
  if (batch === 'lease-lost') throw new Error('the lane was lost')
  const ends = batch.messages.map(
    ({ position }) => ({ kind: 'failed', position, error: 'no', next: { kind: 'park' }, aggregate: 'block' }) as const,
  )
  await outbox.settle(lease, { batch, ends, then: { kind: 'release' } })
  return batch.messages[0]?.position ?? ''
}
