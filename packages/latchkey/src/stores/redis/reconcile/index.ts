/** How unknown rows are settled. Every write of a row is one script, with the clock read in it. */
import type { Reconciliation } from '../../../ports/reconciliation.ts'
import type { Link } from '../connection/link.ts'
import { findEffect } from '../steps/effects.ts'
import { apply, waiting } from './apply.ts'
import { keep } from './keep.ts'
import { giveUp, lookups, nextLookUpInMs, postpone, unknowns } from './look-ups.ts'
import { forgetDeliveries } from './messages.ts'

export function redisReconciliation(link: Link): Reconciliation {
  return {
    keep: (subject, finding) => keep(link, subject, finding),
    apply: (evidenceId, options) => apply(link, evidenceId, options),
    waiting: which => waiting(link, which),
    findEffect: downstreamKey => findEffect(link, downstreamKey),

    lookups: which => lookups(link, which),
    postpone: (lookup, inMs) => postpone(link, lookup, inMs),
    giveUp: (lookup, cause) => giveUp(link, lookup, cause),
    nextLookUpInMs: id => nextLookUpInMs(link, id),
    unknowns: () => unknowns(link),

    forgetDeliveries: which => forgetDeliveries(link, which),
  }
}
