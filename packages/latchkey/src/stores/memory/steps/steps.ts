/** The journal of phased work. Every write checks the claim first, and renews the lease with it. */
import type { Steps } from '../../../ports/steps.ts'
import type { Claim, OwnerResult } from '../../../ports/store.ts'
import type { OpenTransactions } from '../atomic/open-transactions.ts'
import type { MemoryTx } from '../atomic/transaction.ts'
import { heartbeat } from '../keys/heartbeat.ts'
import { ownedRow } from '../keys/owner.ts'
import type { Tables, Writable } from '../tables.ts'
import { addPhase, finishEffect, putIntent, readJournal } from './journal.ts'

export function memorySteps(tables: Tables, transactions: OpenTransactions): Steps<MemoryTx> {
  return {
    readJournal: async id => readJournal(tables, id),

    async enterPhase(tx, claim) {
      const transaction = transactions.of(tx)
      await transaction.begin()
      return transaction.use(draft => (ownedRow(draft, claim) === undefined ? 'claim-lost' : 'written'))
    },
    recordPhase: async (tx, claim, phase, leaseMs) =>
      transactions.of(tx).use(draft => owned(draft, { claim, leaseMs }, () => addPhase(draft, claim.id, phase))),

    openIntent: async (claim, intent, leaseMs) =>
      owned(tables, { claim, leaseMs }, () => putIntent(tables, claim.id, intent)),
    recordResult: async (claim, effect, leaseMs) =>
      owned(tables, { claim, leaseMs }, () => finishEffect(tables, claim.id, effect)),
  }
}

/** `write` is false when the step does not fit the journal: the lease stays as it was then. */
function owned(
  tables: Writable,
  { claim, leaseMs }: { claim: Claim; leaseMs: number },
  write: () => boolean,
): OwnerResult {
  if (ownedRow(tables, claim) === undefined || !write()) return 'claim-lost'
  return heartbeat(tables, claim, leaseMs)
}
