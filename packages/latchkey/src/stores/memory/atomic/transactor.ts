/** Atomic operations: key row, business rows and outcome in one commit. */
import type { Transactor } from '../../../ports/store.ts'
import { record, reserve } from '../keys/claim.ts'
import { readRecord } from '../keys/row.ts'
import type { Writable } from '../tables.ts'
import { notATransaction, type OpenTransactions } from './open-transactions.ts'
import { type MemoryTx, type OpenTransaction, openTransaction, type TransactionOptions } from './transaction.ts'

/** `recordWith`: what `record` writes with, over the draft of the transaction. */
export function memoryTransactor(
  options: TransactionOptions,
  transactions: OpenTransactions,
  recordWith: (draft: Writable) => Writable = draft => draft,
): Transactor<MemoryTx> {
  const { tables, queue } = options
  // Which transaction holds, or is about to hold, an identity: a concurrent duplicate does not stand in the queue.
  const holders = new Map<string, OpenTransaction>()

  return {
    async transaction(work) {
      const transaction = openTransaction(options)
      transactions.add(transaction)
      try {
        const wish = await Promise.race([work(transaction.tx), transaction.overdue])
        if (wish === 'commit') return transaction.commit()
        return { kind: 'rolled-back' }
      } finally {
        transaction.rollback()
        for (const id of transaction.identities) if (holders.get(id) === transaction) holders.delete(id)
      }
    },

    async adopt(tx) {
      const transaction = transactions.of(tx)
      if (transaction.end() !== 'open') return notATransaction('this tx has ended')
      await transaction.begin()
      return transaction.tx
    },

    async reserve(tx, request) {
      const transaction = transactions.of(tx)
      const { id } = request.identity
      if (!transaction.hasBegun()) {
        // A replay does not wait for other transactions.
        const found = reserve(tables, request)
        if (found.kind === 'seen') return found
        const holder = holders.get(id)
        if (holder !== undefined && holder !== transaction) return { kind: 'busy' }
        holders.set(id, transaction)
        transaction.identities.add(id)
      }
      await transaction.begin()
      return transaction.use(draft => reserve(draft, request))
    },

    async record(tx, request, outcome, reservedFence) {
      const transaction = transactions.of(tx)
      if (transaction.end() !== 'open') return 'ended'
      return transaction.use(draft => record(recordWith(draft), request, { outcome, reservedFence }))
    },

    endOf: tx => transactions.of(tx).end(),

    async readAfterCommit(id, waitMs) {
      const leave = await queue.enter(waitMs).catch(() => () => {})
      try {
        return readRecord(tables, id)
      } finally {
        leave()
      }
    },
  }
}
