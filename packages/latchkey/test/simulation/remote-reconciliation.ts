/** Reconciliation of the model over the network. No books are compared here. */
import type { Reconciliation } from '../../src/ports/reconciliation.ts'
import type { Place } from './remote-store.ts'
import type { Process } from './world.ts'

export function remoteReconciliation({ net, store }: Place, process: Process): Reconciliation {
  const ask = <T>(label: string, serve: () => T): Promise<T> => net.call(process, label, answer => answer(serve()))
  return {
    keep: (subject, finding) => ask(`keep ${finding.source}`, () => store.keep(subject, finding)),
    apply: (evidenceId, options) => ask('apply', () => store.apply(evidenceId, options)),
    waiting: options => ask('waiting', () => store.waiting(options)),
    findEffect: downstreamKey => ask('find effect', () => store.findEffect(downstreamKey)),
    lookups: options => ask(`look-ups ${options.operation}`, () => store.lookups(options)),
    postpone: (lookup, inMs) => ask('postpone', () => store.postpone(lookup, inMs)),
    giveUp: (lookup, cause) => ask('give up', () => store.giveUp(lookup, cause)),
    nextLookUpInMs: id => ask('next look-up', () => store.nextLookUpInMs(id)),
    unknowns: () => ask('unknowns', () => store.unknowns()),
    forgetDeliveries: options => ask('forget deliveries', () => store.forgetDeliveries(options)),
    beginLedger: notSimulated,
    renewLedger: notSimulated,
    endLedger: notSimulated,
    lastLedger: notSimulated,
  }
}

async function notSimulated(): Promise<never> {
  throw new Error('not part of the simulation')
}
