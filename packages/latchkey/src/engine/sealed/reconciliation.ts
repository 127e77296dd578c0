/** Evidence, with its answers sealed and its names hashed. */
import type { FoundVerdict, Reconciliation } from '../../ports/reconciliation.ts'
import { sealedTextMark } from '../../ports/sealed-marks.ts'
import type { Keyring } from './keyring.ts'
import { sealOutcome } from './outcome.ts'
import { sealValue } from './steps.ts'

export function sealedReconciliation(reconciliation: Reconciliation, ring: Keyring): Reconciliation {
  return {
    async keep(subject, finding) {
      const { id, effect } = subject
      const verdict = await sealVerdict(ring, { id, position: effect?.position }, finding.verdict)
      return reconciliation.keep(subject, {
        ...finding,
        verdict,
        ref: hashedRef(ring, finding),
      })
    },
    apply: (evidenceId, options) => reconciliation.apply(evidenceId, options),
    waiting: options => reconciliation.waiting(options),
    findEffect: downstreamKey => reconciliation.findEffect(downstreamKey),
    lookups: options => reconciliation.lookups(options),
    postpone: (lookup, inMs) => reconciliation.postpone(lookup, inMs),
    giveUp: (lookup, cause) => reconciliation.giveUp(lookup, cause),
    nextLookUpInMs: id => reconciliation.nextLookUpInMs(id),
    unknowns: () => reconciliation.unknowns(),
    forgetDeliveries: options => reconciliation.forgetDeliveries(options),
  }
}

/** The fence is not known: evidence belongs to whichever grant it settles. */
export async function sealVerdict(
  ring: Keyring,
  { id, position }: { readonly id: string; readonly position: number | undefined },
  verdict: FoundVerdict,
): Promise<FoundVerdict> {
  if (verdict.kind === 'never-happened') return verdict
  if ('outcome' in verdict)
    return { ...verdict, outcome: await sealOutcome(ring, { id, fence: undefined }, verdict.outcome) }
  return { ...verdict, value: await sealValue(ring, { id, position }, verdict.value) }
}

/** With the mark of what is sealed, so that `rewrap` knows names from before. */
export function hashedRef(ring: Keyring, { source, ref }: { readonly source: string; readonly ref: string }): string {
  return sealedTextMark + ring.indexOf('ref', source, ref)
}
