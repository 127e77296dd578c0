/** How unknown rows are settled. */
import type { Ledgers, Reconciliation } from '../../../ports/reconciliation.ts'
import { findEffect } from '../steps/journal.ts'
import type { Tables } from '../tables.ts'
import { apply, waiting } from './apply.ts'
import { forgetDeliveries, keep } from './keep.ts'
import { beginLedger, endLedger, lastLedger, renewLedger } from './ledgers.ts'
import { giveUp, lookups, nextLookUpInMs, postpone, unknowns } from './look-ups.ts'

export function memoryReconciliation(tables: Tables): Reconciliation {
  return {
    keep: async (subject, finding) => keep(tables, subject, finding),
    apply: async (evidenceId, options) => apply(tables, evidenceId, options),
    waiting: async which => waiting(tables, which),
    findEffect: async downstreamKey => findEffect(tables, downstreamKey),

    lookups: async which => lookups(tables, which),
    postpone: async (lookup, inMs) => postpone(tables, lookup, inMs),
    giveUp: async (lookup, cause) => giveUp(tables, lookup, cause),
    nextLookUpInMs: async id => nextLookUpInMs(tables, id),
    unknowns: async () => unknowns(tables),

    forgetDeliveries: async which => forgetDeliveries(tables, which),
  }
}

export function memoryLedgers(tables: Tables): Ledgers {
  return {
    begin: async (name, options) => beginLedger(tables, name, options),
    renew: async (run, leaseMs) => renewLedger(tables, run, leaseMs),
    end: async (run, end) => endLedger(tables, run, end),
    last: async name => lastLedger(tables, name),
  }
}
