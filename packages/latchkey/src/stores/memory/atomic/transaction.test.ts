import { describe, expect, it } from 'vitest'
import { createLatchkey, singleTenant } from 'latchkey'
import { atomicRequest } from '../../../../test/memory/requests.ts'
import { sleep, systemClock } from '../../../ports/clock.ts'
import { type MemoryStore, memoryStore, type MemoryTx } from '../index.ts'

interface Order {
  readonly id: string
  readonly lines: string[]
}

const newOrder = (): Order => ({ id: '1', lines: ['tea'] })
const order = newOrder()
const failure = new Error('the handler failed')

function ordersOf(store: MemoryStore): readonly Order[] {
  return store
    .table<Order>('orders')
    .entries()
    .map(([, value]) => value)
}

describe('a tx of the memory store', () => {
  it('shows its own writes, which nobody else sees before the commit', async () => {
    const store = memoryStore()
    await store.transaction(async tx => {
      tx.table<Order>('orders').set('1', order)
      expect(tx.table<Order>('orders').get('1')).toEqual(order)
      expect(ordersOf(store)).toEqual([])
    })
    expect(ordersOf(store)).toEqual([order])
  })

  it('restores every table when the work rejects, whatever was written, replaced and deleted', async () => {
    const store = memoryStore()
    await store.transaction(async tx => {
      tx.table('orders').set('1', order)
      tx.table('stock').set('tea', 3)
    })
    const failed = store.transaction(async tx => {
      tx.table<Order>('orders').get('1')?.lines.push('changed in place')
      tx.table('orders').set('1', { id: '1', lines: [] })
      tx.table('orders').set('2', order)
      tx.table('stock').delete('tea')
      throw failure
    })
    await expect(failed).rejects.toBe(failure)
    expect(ordersOf(store)).toEqual([newOrder()])
    expect(store.table<number>('stock').get('tea')).toBe(3)
  })

  it('keeps what a nested transaction committed, and drops what one rolled back', async () => {
    const store = memoryStore()
    await store.transaction(async tx => {
      const stock = tx.table<number>('stock')
      stock.set('tea', 1)
      tx.begin()
      stock.set('tea', 2)
      tx.begin()
      stock.set('tea', 3)
      tx.commit()
      tx.rollback()
      expect(stock.get('tea')).toBe(1)
      tx.begin()
      stock.set('milk', 1)
      tx.commit()
      expect(() => tx.commit()).toThrow('would end Latchkey')
    })
    expect(store.table<number>('stock').entries()).toEqual([
      ['tea', 1],
      ['milk', 1],
    ])
  })

  it('throws once its transaction has ended', async () => {
    const store = memoryStore()
    const kept = await store.transaction(async tx => ({ tx, table: tx.table('orders') }))
    expect(() => kept.table.set('1', order)).toThrow('this transaction has ended')
    expect(() => kept.tx.begin()).toThrow('this transaction has ended')
    await expect(store.transactor.adopt(kept.tx)).rejects.toMatchObject({ code: 'not-a-transaction' })
  })

  it('is refused by another store, which names the reason', async () => {
    const [store, other] = [memoryStore(), memoryStore()]
    const message = expect.stringContaining('this tx was not opened by this store')
    await store.transaction(async tx => {
      await expect(other.transactor.adopt(tx)).rejects.toMatchObject({ code: 'not-a-transaction', message })
      const appended = other.outbox.append(tx, {
        ...{ topic: 't', aggregate: undefined, dedupId: 'd' },
        ...{ payload: new Uint8Array(), headers: {} },
      })
      await expect(appended).rejects.toMatchObject({ code: 'not-a-transaction', message })
    })
  })
})

describe('a transaction of the memory store', () => {
  it('is rolled back when it was open for too long, and lets the next one in', async () => {
    const store = memoryStore({ transactionMs: 20 })
    let late: MemoryTx | undefined
    const slow = store.transaction(async tx => {
      tx.table('orders').set('1', order)
      late = tx
      await sleep(systemClock, 60)
    })
    const next = store.transaction(async tx => tx.table('orders').set('2', order))
    await expect(slow).rejects.toMatchObject({ code: 'store-unavailable' })
    await next
    expect(() => late?.table('orders').get('1')).toThrow('open for 20 ms')
    expect(
      store
        .table('orders')
        .entries()
        .map(([id]) => id),
    ).toEqual(['2'])
  })

  it('waits for the one before it, and is refused after waitMs', async () => {
    const store = memoryStore({ waitMs: 10 })
    const seen: number[] = []
    const slow = store.transaction(async tx => {
      await sleep(systemClock, 40)
      tx.table('stock').set('tea', 1)
    })
    const early = store.transaction(async () => undefined)
    await expect(early).rejects.toMatchObject({ code: 'overloaded' })
    await slow
    await store.transaction(async tx => void seen.push(tx.table<number>('stock').get('tea') ?? 0))
    expect(seen).toEqual([1])
  })

  it('is a conflict when its key was claimed by a call outside of it', async () => {
    const store = memoryStore()
    const request = atomicRequest('k')
    const end = await store.transactor.transaction(async tx => {
      await store.transactor.reserve(tx, request)
      tx.table('orders').set('1', order)
      const outcome = { status: 200, headers: [], body: undefined, version: 1 }
      await store.transactor.record(tx, request, outcome, 0)
      const { identity, fingerprint } = request
      await store.claim({
        ...{ identity, fingerprint, claimId: systemClock.randomId(), recovery: 'hold', description: undefined },
        ...{ leaseMs: 1_000, expiresInMs: 1_000 },
      })
      return 'commit'
    })
    expect(end).toMatchObject({ kind: 'conflict' })
    expect(ordersOf(store)).toEqual([])
    expect(await store.read(request.identity.id)).toMatchObject({ state: 'in_progress', recovery: 'hold' })
  })

  it('of the application commits or rolls back with an operation that was handed its tx', async () => {
    const store = memoryStore()
    const latchkey = createLatchkey({ store, scope: singleTenant })
    const create = latchkey.atomic('orders.create')
    const ask = (tx: MemoryTx) =>
      create.run({ scope: 'acme', key: 'k', input: 1, tx }, async () => {
        tx.table('orders').set('1', order)
        return order.id
      })
    const failed = store.transaction(async tx => {
      await ask(tx)
      throw failure
    })
    await expect(failed).rejects.toBe(failure)
    expect(ordersOf(store)).toEqual([])
    expect(await store.transaction(ask)).toBe('1')
    expect(await store.transaction(ask)).toBe('1')
    expect(ordersOf(store)).toEqual([order])
    await latchkey.close()
  })
})
