/** The journal of phased work. Every write checks the claim first, in its own transaction, and renews the lease with it. */
import type { Steps } from '../../../ports/steps.ts'
import type { Claim, OwnerResult } from '../../../ports/store.ts'
import type { Database } from '../connection/database.ts'
import type { Handle } from '../connection/handle.ts'
import { addPhase, finishEffect, putIntent, readJournal } from './journal.ts'
import { heartbeat } from '../keys/heartbeat.ts'
import { isOwner } from '../keys/owner.ts'
import type { OpenTransactions } from '../atomic/open-transactions.ts'
import type { SqliteTx } from '../atomic/transaction.ts'

export function sqliteSteps(database: Database, transactions: OpenTransactions): Steps<SqliteTx> {
  return {
    readJournal: id => database.snapshot(handle => readJournal(handle, id)),

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

    openIntent: (claim, intent, leaseMs) =>
      database.write(handle => owned(handle, { claim, leaseMs }, () => putIntent(handle, claim.id, intent))),
    recordResult: (claim, effect, leaseMs) =>
      database.write(handle => owned(handle, { claim, leaseMs }, () => finishEffect(handle, claim.id, effect))),
  }
}

/** `write` is false when the step does not fit the journal: the lease stays as it was then. */
function owned(
  handle: Handle,
  { claim, leaseMs }: { claim: Claim; leaseMs: number },
  write: () => boolean,
): OwnerResult {
  if (!isOwner(handle, claim) || !write()) return 'claim-lost'
  return heartbeat(handle, claim, leaseMs)
}
