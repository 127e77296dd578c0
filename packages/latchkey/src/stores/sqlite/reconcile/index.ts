/** How unknown rows are settled. Every write is one transaction, with the clock read in it. */
import type { Ledgers, Reconciliation } from '../../../ports/reconciliation.ts'
import { apply, waiting } from './apply.ts'
import type { Database } from '../connection/database.ts'
import { findEffect } from '../steps/journal.ts'
import { forgetDeliveries, keep } from './keep.ts'
import { beginLedger, endLedger, lastLedger, renewLedger } from './ledgers.ts'
import { giveUp, lookups, nextLookUpInMs, postpone, unknowns } from './look-ups.ts'

export function sqliteReconciliation(database: Database): Reconciliation {
  return {
    keep: (subject, finding) => database.write(handle => keep(handle, subject, finding)),
    apply: (evidenceId, options) => database.write(handle => apply(handle, evidenceId, options)),
    waiting: which => database.read(handle => waiting(handle, which)),
    findEffect: downstreamKey => database.read(handle => findEffect(handle, downstreamKey)),

    lookups: which => database.write(handle => lookups(handle, which)),
    postpone: (lookup, inMs) => database.write(handle => postpone(handle, lookup, inMs)),
    giveUp: (lookup, cause) => database.write(handle => giveUp(handle, lookup, cause)),
    nextLookUpInMs: id => database.read(handle => nextLookUpInMs(handle, id)),
    unknowns: () => database.snapshot(handle => unknowns(handle)),

    forgetDeliveries: which => database.write(handle => forgetDeliveries(handle, which)),
  }
}

export function sqliteLedgers(database: Database): Ledgers {
  return {
    begin: (name, options) => database.write(handle => beginLedger(handle, name, options)),
    renew: (run, leaseMs) => database.write(handle => renewLedger(handle, run, leaseMs)),
    end: (run, end) => database.write(handle => endLedger(handle, run, end)),
    last: name => database.snapshot(handle => lastLedger(handle, name)),
  }
}
