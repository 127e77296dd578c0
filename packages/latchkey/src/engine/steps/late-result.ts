/** A provider's answer that came after the run had lost its claim: not dropped, but stored as evidence about the effect. */
import type { Intent } from '../../ports/steps.ts'
import { untilStored } from '../store/call.ts'
import type { StepRun } from './step-run.ts'

export interface LateResult {
  readonly intent: Pick<Intent, 'position' | 'name' | 'epoch'>
  readonly result: string | undefined
}

/** Memory that an entry takes beside the result. */
const entryBytes = 1_024

/** The answer may be the only proof there is: retried while the run may wait, then in the background, when the store is back. */
export async function storeLateResult<Tx>(run: StepRun<Tx>, late: LateResult): Promise<void> {
  const { core, claim, operation, holdMsMax } = run
  const write = async () => {
    await submitLateResult(run, late)
    return 'written' as const
  }
  try {
    await untilStored(core.clock, write)
  } catch {
    const bytes = entryBytes + (late.result?.length ?? 0)
    core.unstored.keep({ claim, operation, bytes, holdMsMax, write, lease: undefined })
  }
}

/** Stored first, then applied if the row still waits for it. The reconciler finds what is stored and not applied. */
export async function submitLateResult<Tx>(run: StepRun<Tx>, { intent, result }: LateResult): Promise<void> {
  const { core, claim, operation, retentionMs } = run
  const { reconciliation } = core.store
  if (reconciliation === undefined) return reportLateResult(run, intent.name)
  const { position, name, epoch } = intent
  const subject = { id: claim.id, effect: { position, name, epoch } }
  const ref = `${claim.claimId}:${position}`
  const verdict = { kind: 'happened', value: result } as const
  const keep = () => reconciliation.keep(subject, { source: 'late-owner', ref, verdict })
  const kept = await core.calls.call('keep evidence', keep)
  if (kept.kind !== 'kept' && kept.kind !== 'duplicate') return
  const options = { quarantineMs: 0, retentionMs }
  const applied = await core.calls
    .call('apply evidence', () => reconciliation.apply(kept.evidenceId, options))
    .catch(() => undefined)
  if (applied?.kind !== 'settled') return
  core.telemetry.count('reconcile.resolved', { operation, identity: claim.id, detail: 'late-owner' })
}

/** No place for evidence: a person must learn of it. */
function reportLateResult<Tx>({ core, claim, operation }: StepRun<Tx>, effect: string): void {
  const message = `${effect} happened, and its run had lost the row: the ${core.store.name} store has no reconciliation to store that in. Settle the row`
  core.telemetry.report(message, { operation, identity: claim.id })
}
