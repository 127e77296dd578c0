/** A provider's answer that came when the row was no longer its owner's: not thrown away, but kept as evidence about the effect. */
import { sleep } from '../../ports/clock.ts'
import type { Intent } from '../../ports/steps.ts'
import type { PhasedRun } from './phased-execution.ts'

/** The answer may be the only proof there is: worth a few seconds of a store that hiccups. */
const keepForMs = 5_000
const firstPauseMs = 50

export interface LateResult {
  readonly intent: Pick<Intent, 'position' | 'name' | 'epoch'>
  readonly result: string | undefined
}

/** What it takes of memory beside the result. */
const entryBytes = 1_024

/** For as long as the run may wait; then in the background, when the store is back. */
export async function keepLateResult<Tx>(run: PhasedRun<Tx>, late: LateResult): Promise<void> {
  if (await isKeptInTime(run, late)) return
  const { core, claim, operation, holdMsMax } = run
  const write = async () => {
    await sayLateResult(run, late)
    return 'written' as const
  }
  const bytes = entryBytes + (late.result?.length ?? 0)
  core.unstored.keep({ claim, operation, bytes, holdMsMax, write, lease: undefined })
}

/** Once. Kept first, then applied if the row still waits for it. What is kept and not applied is found by the reconciler. */
export async function sayLateResult<Tx>(run: PhasedRun<Tx>, { intent, result }: LateResult): Promise<void> {
  const { core, claim, operation, retentionMs } = run
  const { reconciliation } = core.store
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

async function isKeptInTime<Tx>(run: PhasedRun<Tx>, late: LateResult): Promise<boolean> {
  const { clock } = run.core
  const until = clock.monotonicMs() + keepForMs
  for (let pauseMs = firstPauseMs; ; pauseMs *= 2) {
    try {
      await sayLateResult(run, late)
      return true
    } catch {
      if (clock.monotonicMs() + pauseMs > until) return false
      await sleep(clock, pauseMs)
    }
  }
}
