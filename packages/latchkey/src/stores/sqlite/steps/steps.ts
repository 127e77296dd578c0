/** The journal of phased work. Every write checks the claim first, in its own transaction, and renews the lease with it. */
import type { Steps } from '../../../ports/steps.ts'
import type { Claim, OwnerResult } from '../../../ports/store.ts'
import type { Database } from '../connection/database.ts'
import type { Handle } from '../connection/handle.ts'
import { finishEffect, putIntent, readJournal } from './journal.ts'
import { heartbeat } from '../keys/heartbeat.ts'
import { isOwner } from '../keys/owner.ts'

export function sqliteSteps(database: Database): Steps {
  return {
    readJournal: id => database.snapshot(handle => readJournal(handle, id)),
    openIntent: (claim, intent, leaseMs) =>
      database.write(handle => owned(handle, { claim, leaseMs }, () => putIntent(handle, claim.id, intent))),
    recordResult: (claim, effect, leaseMs) =>
      database.write(handle => owned(handle, { claim, leaseMs }, () => finishEffect(handle, claim.id, effect))),
  }
}

/** `write` is false when the step does not fit the journal: the lease stays as it was then. */
export function owned(
  handle: Handle,
  { claim, leaseMs }: { claim: Claim; leaseMs: number },
  write: () => boolean,
): OwnerResult {
  if (!isOwner(handle, claim) || !write()) return 'claim-lost'
  return heartbeat(handle, claim, leaseMs)
}
