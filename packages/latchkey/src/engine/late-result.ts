/** A provider's answer that came when the row was no longer its owner's: not thrown away, but kept as evidence about the effect. */
import { sleep } from '../ports/clock.ts'
import type { KeepResult } from '../ports/reconciliation.ts'
import type { Intent } from '../ports/steps.ts'
import type { PhasedRun } from './phased-execution.ts'

/** The answer may be the only proof there is: worth a few seconds of a store that hiccups. */
const keepForMs = 5_000
const firstPauseMs = 50

/** Kept first, then applied if the row still waits for it. What is kept and not applied is found by the reconciler. */
export async function keepLateResult<Tx>(
  run: PhasedRun<Tx>,
  { position, name, epoch }: Pick<Intent, 'position' | 'name' | 'epoch'>,
  result: string | undefined,
): Promise<void> {
  const { core, claim, operation, retentionMs } = run
  const { reconciliation } = core.store
  const subject = { id: claim.id, effect: { position, name, epoch } }
  const ref = `${claim.claimId}:${position}`
  const verdict = { kind: 'happened', result } as const
  const kept = await untilKept(run, () => reconciliation.keep(subject, { source: 'late-owner', ref, verdict }))
  if (kept?.kind !== 'kept' && kept?.kind !== 'duplicate') return
  const options = { quarantineMs: 0, retentionMs }
  const applied = await core.calls
    .call('apply evidence', () => reconciliation.apply(kept.evidenceId, options))
    .catch(() => undefined)
  if (applied?.kind !== 'settled') return
  core.telemetry.count('reconcile.resolved', { operation, identity: claim.id, detail: 'late-owner' })
}

async function untilKept<Tx>(
  { core }: PhasedRun<Tx>,
  keep: () => Promise<KeepResult>,
): Promise<KeepResult | undefined> {
  const until = core.clock.monotonicMs() + keepForMs
  for (let pauseMs = firstPauseMs; ; pauseMs *= 2) {
    try {
      return await core.calls.call('keep evidence', keep)
    } catch {
      if (core.clock.monotonicMs() + pauseMs > until) return undefined
      await sleep(core.clock, pauseMs)
    }
  }
}
