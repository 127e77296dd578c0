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

/** The position of `a1`, which its consumer has refused. */
export async function parkOne<Tx>(store: Store<Tx>): Promise<string> {
  const [position = ''] = await parkEach(store, ['a'])
  return position
}

/** The positions of the first messages of these aggregates, which their consumers have refused. */
export async function parkEach<Tx>(store: Store<Tx>, aggregates: readonly string[]): Promise<readonly string[]> {
  const parked: string[] = []
  for (const aggregate of aggregates) parked.push(...(await park(store, aggregate)))
  return parked
}

async function park<Tx>(store: Store<Tx>, aggregate: string): Promise<readonly string[]> {
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
  return batch.messages.map(({ position }) => position)
}
