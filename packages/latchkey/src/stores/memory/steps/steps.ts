/** The journal of phased work. Every write checks the claim first, and renews the lease with it. */
import type { Steps } from '../../../ports/steps.ts'
import type { Claim, OwnerResult } from '../../../ports/store.ts'
import { heartbeat } from '../keys/heartbeat.ts'
import { ownedRow } from '../keys/owner.ts'
import type { Tables, Writable } from '../tables.ts'
import { finishEffect, putIntent, readJournal } from './journal.ts'

export function memorySteps(tables: Tables): Steps {
  return {
    readJournal: async id => readJournal(tables, id),
    openIntent: async (claim, intent, leaseMs) =>
      owned(tables, { claim, leaseMs }, () => putIntent(tables, claim.id, intent)),
    recordResult: async (claim, effect, leaseMs) =>
      owned(tables, { claim, leaseMs }, () => finishEffect(tables, claim.id, effect)),
  }
}

/** `write` is false when the step does not fit the journal: the lease stays as it was then. */
export function owned(
  tables: Writable,
  { claim, leaseMs }: { claim: Claim; leaseMs: number },
  write: () => boolean,
): OwnerResult {
  if (ownedRow(tables, claim) === undefined || !write()) return 'claim-lost'
  return heartbeat(tables, claim, leaseMs)
}
