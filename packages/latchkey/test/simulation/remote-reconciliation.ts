/** Reconciliation over the network. No ledgers are compared here. */
import type { Reconciliation } from '../../src/ports/reconciliation.ts'
import { askDatabase, type Place } from './ask-database.ts'
import type { Cause } from './database.ts'
import type { Process } from './world.ts'

const reconciler = (what: string): Cause => ({ by: 'reconciler', what })

export function remoteReconciliation(place: Place, process: Process): Reconciliation {
  const { ask, change } = askDatabase(place, process)
  return {
    keep: (subject, finding) =>
      ask(`keep ${finding.source}`, ({ reconciliation }) => reconciliation.keep(subject, finding)),
    apply: (evidenceId, options) =>
      change('apply', applied(place, evidenceId), ({ reconciliation }) => reconciliation.apply(evidenceId, options)),
    waiting: options => ask('waiting', ({ reconciliation }) => reconciliation.waiting(options)),
    findEffect: downstreamKey => ask('find effect', ({ reconciliation }) => reconciliation.findEffect(downstreamKey)),
    lookups: options =>
      change(`look-ups ${options.operation}`, reconciler('look-up'), ({ reconciliation }) =>
        reconciliation.lookups(options),
      ),
    postpone: (lookup, inMs) =>
      change('postpone', reconciler('postpone'), ({ reconciliation }) => reconciliation.postpone(lookup, inMs)),
    giveUp: (lookup, cause) =>
      change('give up', reconciler('give-up'), ({ reconciliation }) => reconciliation.giveUp(lookup, cause)),
    nextLookUpInMs: id => ask('next look-up', ({ reconciliation }) => reconciliation.nextLookUpInMs(id)),
    unknowns: () => ask('unknowns', ({ reconciliation }) => reconciliation.unknowns()),
    forgetDeliveries: options =>
      ask('forget deliveries', ({ reconciliation }) => reconciliation.forgetDeliveries(options)),
  }
}

function applied({ database }: Place, evidenceId: string): Cause {
  const evidence = database.evidence(evidenceId)
  const by = evidence?.source === 'late-owner' ? 'late owner' : 'reconciler'
  return { by, what: `apply ${evidence?.source} ${evidence?.verdict.kind}`, evidence }
}
