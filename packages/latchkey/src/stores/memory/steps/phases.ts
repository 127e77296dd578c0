/** Phases: the step is recorded in the transaction that the application writes in. */
import type { Phases } from '../../../ports/steps.ts'
import type { OpenTransactions } from '../atomic/open-transactions.ts'
import type { MemoryTx } from '../atomic/transaction.ts'
import { ownedRow } from '../keys/owner.ts'
import { addPhase } from './journal.ts'
import { owned } from './steps.ts'

export function memoryPhases(transactions: OpenTransactions): Phases<MemoryTx> {
  return {
    async enterPhase(tx, claim) {
      const transaction = transactions.of(tx)
      await transaction.begin()
      return transaction.use(draft => (ownedRow(draft, claim) === undefined ? 'claim-lost' : 'written'))
    },
    recordPhase: async (tx, claim, phase, leaseMs) =>
      transactions.of(tx).use(draft => owned(draft, { claim, leaseMs }, () => addPhase(draft, claim.id, phase))),
  }
}
