/** Transactions whose key has its answer in the cache are not opened. */
import type { KeyRecord, Transactor } from '../../ports/store.ts'
import type { Ticket, Tier } from './cache/tier.ts'

export function tieredTransactor<Tx>(transactor: Transactor<Tx>, tier: Tier): Transactor<Tx> {
  /** What stands for a transaction that was not opened, and what its reservation finds. */
  const answered = new WeakMap<object, KeyRecord>()
  const tickets = new WeakMap<object, Ticket>()
  return {
    ...transactor,
    async transaction(work, first) {
      if (first === undefined || !tier.covers(first.identity.operation)) return transactor.transaction(work, first)
      const found = await tier.lookUp(first.identity.id)
      if (found.kind === 'hit') {
        const unopened = {}
        answered.set(unopened, found.record)
        // The work reserves before anything else, gets the row that was found, and ends: no statement is sent in it.
        await work(unopened as Tx)
        return { kind: 'rolled-back' }
      }
      const { ticket } = found
      return transactor.transaction(async tx => {
        if (ticket !== undefined && isObject(tx)) tickets.set(tx, ticket)
        return work(tx)
      }, first)
    },
    async reserve(tx, request) {
      const record = isObject(tx) ? answered.get(tx) : undefined
      if (record !== undefined) return { kind: 'seen', record }
      const reservation = await transactor.reserve(tx, request)
      // Only of a transaction that began after the ticket: a caller's own may see the database as it was before.
      const ticket = isObject(tx) ? tickets.get(tx) : undefined
      if (reservation.kind === 'seen' && ticket?.id === request.identity.id) tier.offer(ticket, reservation.record)
      return reservation
    },
  }
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}
