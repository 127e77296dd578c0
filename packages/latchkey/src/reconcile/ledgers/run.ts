/** A comparison under its lease: begun by one of several processes, renewed while it runs, ended with its counts. */
import { LatchkeyError } from '../../ports/errors.ts'
import type { LedgerRun } from '../../ports/reconciliation.ts'
import { compareLedgers, type LedgerReport, type NamedLedger } from './compare.ts'
import type { Parts } from '../host.ts'

/** A process that dies is replaced after this; renewed every third of it. */
const leaseMs = 60_000
/** After a failure: providers recover in minutes. Never later than the next one would be. */
const retryMsMax = 300_000

export type Begun =
  | { readonly kind: 'begun'; readonly report: Promise<LedgerReport> }
  | { readonly kind: 'not-due'; readonly inMs: number }

export interface Beginning {
  readonly ledger: NamedLedger
  /** Zero: now, unless somebody else is at it. */
  readonly everyMs: number
  readonly ending: AbortSignal
}

export async function beginComparison(parts: Parts, { ledger, everyMs, ending }: Beginning): Promise<Begun> {
  const { store, call } = parts
  const begun = await call('begin ledger', () => store.reconciliation.beginLedger(ledger.name, { everyMs, leaseMs }))
  return begun.kind === 'begun' ? { kind: 'begun', report: run(parts, { ledger, run: begun.run, ending }) } : begun
}

interface Running {
  readonly ledger: NamedLedger
  readonly run: LedgerRun
  readonly ending: AbortSignal
}

async function run(parts: Parts, { ledger, run: own, ending }: Running): Promise<LedgerReport> {
  const { store, call, telemetry } = parts
  const kept = keepRun(parts, own, ending)
  try {
    const report = await compareLedgers(parts, { ledger, run: own, signal: kept.signal })
    kept.signal.throwIfAborted()
    const { compared, missing, extra, different, settled } = report
    const counts = { compared, missing, extra, different, settled }
    if ((await call('end ledger', () => store.reconciliation.endLedger(own, { counts }))) === 'claim-lost')
      throw lost(own)
    await tellReport(parts, ledger, report)
    return report
  } catch (error) {
    const retryInMs = ending.aborted ? 0 : Math.min(retryMsMax, ledger.everyMs)
    // A store that fails here makes the next run wait for the lease.
    await call('end ledger', () => store.reconciliation.endLedger(own, { retryInMs })).catch(() => undefined)
    if (!ending.aborted) {
      telemetry.count('reconcile.failed', { detail: `ledger ${ledger.name}` })
      telemetry.report('a ledger comparison failed, and is tried again', { detail: ledger.name, error })
    }
    throw error
  } finally {
    kept.stop()
  }
}

async function tellReport({ telemetry }: Parts, ledger: NamedLedger, report: LedgerReport): Promise<void> {
  const { name, missing, extra, different } = report
  const attributes = { detail: name }
  telemetry.observe('ledger.missing', missing, attributes)
  telemetry.observe('ledger.extra', extra, attributes)
  telemetry.observe('ledger.different', different, attributes)
  telemetry.observe('ledger.last_run_age', 0, attributes)
  if (missing + extra + different > 0) {
    // Never the keys: they may be personal.
    const what = `${name}: ${missing} missing, ${extra} extra, ${different} different`
    telemetry.report('a ledger comparison found differences', { detail: what })
  }
  try {
    await ledger.report?.(report)
  } catch (error) {
    // The comparison is over, and counted.
    telemetry.report('the report of a ledger comparison was not taken', { detail: name, error })
  }
}

/** Renews the lease; aborts when it is lost, or may be. */
function keepRun(parts: Parts, own: LedgerRun, ending: AbortSignal): { signal: AbortSignal; stop(): void } {
  const { store, clock, call } = parts
  const over = new AbortController()
  let endsAtMs = clock.monotonicMs() + leaseMs
  let cancel = () => {}
  let stopped = false
  const end = () => over.abort(ending.reason)
  ending.addEventListener('abort', end, { once: true })
  if (ending.aborted) end()
  const renew = async () => {
    const askedAtMs = clock.monotonicMs()
    const renewed = await call('renew ledger', () => store.reconciliation.renewLedger(own, leaseMs)).catch(
      () => 'failed',
    )
    if (stopped) return
    if (renewed === 'written') endsAtMs = askedAtMs + leaseMs
    if (renewed === 'claim-lost' || clock.monotonicMs() >= endsAtMs) return over.abort(lost(own))
    schedule()
  }
  const schedule = () => void (cancel = clock.after(leaseMs / 3, () => void renew()))
  schedule()
  return {
    signal: over.signal,
    stop() {
      stopped = true
      cancel()
      ending.removeEventListener('abort', end)
    },
  }
}

function lost({ name }: LedgerRun): LatchkeyError {
  return new LatchkeyError(
    'claim-lost',
    `the comparison of the ledger ${name} went on for too long without a renewal, and is another process's now`,
  )
}
