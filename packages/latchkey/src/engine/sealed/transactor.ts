/** Transactions, with what they record sealed. */
import type { AtomicRequest, Transactor } from '../../ports/store.ts'
import type { Keyring } from './keyring.ts'
import { sealOutcome } from './outcome.ts'
import type { OpenRecord } from './record.ts'

interface Sealing {
  readonly ring: Keyring
  readonly openRecord: OpenRecord
  readonly sealDescription: <R extends Described>(request: R) => Promise<R>
  /** Fences of the store are 1, 2, 3 …, so that the one of a record is known. */
  readonly isDense: boolean
}

export type Described = Pick<AtomicRequest, 'identity' | 'description'>

export function sealedTransactor<Tx>(transactor: Transactor<Tx>, how: Sealing): Transactor<Tx> {
  const { ring, openRecord, sealDescription, isDense } = how
  const sealed = new WeakMap<AtomicRequest, Promise<AtomicRequest>>()
  /** The same object for the same request: a store recognises the reservation that it sent ahead. */
  const sealOnce = (request: AtomicRequest): Promise<AtomicRequest> => {
    const known = sealed.get(request)
    if (known !== undefined) return known
    const sealing = sealDescription(request)
    sealed.set(request, sealing)
    // A KMS that failed is asked again.
    sealing.catch(() => sealed.delete(request))
    return sealing
  }
  const outcomeOf = (request: AtomicRequest, outcome: Parameters<typeof sealOutcome>[2], reservedFence: number) =>
    sealOutcome(ring, { id: request.identity.id, fence: isDense ? reservedFence + 1 : undefined }, outcome)
  const { recordLast } = transactor
  const last: Pick<Transactor<Tx>, 'recordLast'> = recordLast === undefined
    ? {}
    : {
        async recordLast(tx, request, outcome, reservedFence) {
          const sealedOutcome = await outcomeOf(request, outcome, reservedFence)
          return recordLast.call(transactor, tx, await sealOnce(request), sealedOutcome, reservedFence)
        },
      }
  return {
    transaction: async (work, first) => transactor.transaction(work, first && (await sealOnce(first))),
    adopt: tx => transactor.adopt(tx),
    async reserve(tx, request) {
      const reservation = await transactor.reserve(tx, await sealOnce(request))
      if (reservation.kind !== 'seen') return reservation
      return { ...reservation, record: await openRecord(reservation.record) }
    },
    async record(tx, request, outcome, reservedFence) {
      const sealedOutcome = await outcomeOf(request, outcome, reservedFence)
      return transactor.record(tx, await sealOnce(request), sealedOutcome, reservedFence)
    },
    ...last,
    endOf: tx => transactor.endOf(tx),
    readAfterCommit: async (id, waitMs) => openRecord(await transactor.readAfterCommit(id, waitMs)),
  }
}
