/** Phases: the step is recorded in the transaction that the application writes in. */
import type { Phases } from '../../../ports/steps.ts'
import type { OpenTransactions } from '../atomic/open-transactions.ts'
import type { SqliteTx } from '../atomic/transaction.ts'
import type { Database } from '../connection/database.ts'
import { isOwner } from '../keys/owner.ts'
import { addPhase } from './journal.ts'
import { owned } from './steps.ts'

export function sqlitePhases(database: Database, transactions: OpenTransactions): Phases<SqliteTx> {
  return {
    enterPhase: (tx, claim) =>
      database.translateErrors(async () => {
        const transaction = transactions.of(tx)
        // From here on this transaction is the only writer: a claim that would take the row over waits until it has ended.
        await transaction.begin()
        return transaction.use(handle => (isOwner(handle, claim) ? 'written' : 'claim-lost'))
      }),
    recordPhase: (tx, claim, phase, leaseMs) =>
      database.translateErrors(async () =>
        transactions.of(tx).use(handle => owned(handle, { claim, leaseMs }, () => addPhase(handle, claim.id, phase))),
      ),
  }
}
