/** A transactional store with a business table beside it, and one atomic operation on both. */
import assert from 'node:assert/strict'
import type { AtomicRequest, Reservation, Store, TransactionEnd, Transactor } from 'latchkey'
import type { BusinessTable, StoreHarness } from '../../store-harness.ts'
import { answer, atomicRequest } from '../fixture.ts'

/** Long enough for a store that answers at once, shorter than an embedded store lets a transaction stay open. */
export const answersAtOnceMs = 400

export interface AtomicFixture {
  readonly store: Store
  readonly transactor: Transactor<unknown>
  readonly business: BusinessTable
}

export async function open(harness: StoreHarness): Promise<AtomicFixture> {
  const store = await harness.open()
  assert.ok(store.transactor, `${store.name} says that it has transactions, and has none`)
  assert.ok(harness.business, 'the harness of a store with transactions needs a business table')
  return { store, transactor: store.transactor, business: harness.business }
}

/** One atomic operation as the engine runs it: reserve, work, record. */
export async function runAtomic(
  { transactor, business }: AtomicFixture,
  key: string,
  end: 'commit' | 'rollback' = 'commit',
): Promise<TransactionEnd> {
  const asked = atomicRequest(key)
  return transactor.transaction(async tx => {
    const reserved = await transactor.reserve(tx, asked)
    if (reserved.kind !== 'free') return 'rollback'
    await business.insert(tx, `order for ${key}`)
    const recorded = await transactor.record(tx, asked, answer(key), reserved.fence)
    return recorded === 'taken' ? 'rollback' : end
  })
}

export async function reserved(
  transactor: Transactor<unknown>,
  asked: AtomicRequest = atomicRequest('a'),
): Promise<Reservation> {
  let found: Reservation | undefined
  await transactor.transaction(async tx => {
    found = await transactor.reserve(tx, asked)
    return 'rollback'
  })
  assert.ok(found)
  return found
}
