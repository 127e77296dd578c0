/** A comparison under its lease: started by one of several processes, renewed while it runs, ended with its counts. */
import { LatchkeyError } from '../../ports/errors.ts'
import type { LedgerRun } from '../../ports/reconciliation.ts'
import { compareLedgers, type LedgerReport, type NamedLedger } from './compare.ts'
import type { ReconcilerContext } from '../host.ts'

/** Another process takes over after this; renewed every third of it. */
const leaseMs = 60_000
/** The wait after a failure: providers recover in minutes. Never longer than the interval. */
const retryMsMax = 300_000

export type ComparisonStart =
  | { readonly kind: 'begun'; readonly report: Promise<LedgerReport> }
  | { readonly kind: 'not-due'; readonly inMs: number }

export interface ComparisonRequest {
  readonly ledger: NamedLedger
  /** Zero: start now, unless another comparison is in progress. */
  readonly everyMs: number
  readonly ending: AbortSignal
}

export async function beginComparison(
  context: ReconcilerContext,
  { ledger, everyMs, ending }: ComparisonRequest,
): Promise<ComparisonStart> {
  const begun = await context.call('begin ledger', () => context.ledgers().begin(ledger.name, { everyMs, leaseMs }))
  return begun.kind === 'begun' ? { kind: 'begun', report: run(context, { ledger, run: begun.run, ending }) } : begun
}

interface StartedComparison {
  readonly ledger: NamedLedger
  readonly run: LedgerRun
  readonly ending: AbortSignal
}

async function run(context: ReconcilerContext, { ledger, run: own, ending }: StartedComparison): Promise<LedgerReport> {
  const { call, telemetry } = context
  const ledgers = context.ledgers()
  const held = holdLease(context, own, ending)
  try {
    const report = await compareLedgers(context, { ledger, run: own, signal: held.signal })
    held.signal.throwIfAborted()
    const { compared, missing, extra, different, settled } = report
    const counts = { compared, missing, extra, different, settled }
    if ((await call('end ledger', () => ledgers.end(own, { counts }))) === 'claim-lost') throw lost(own)
    await publishReport(context, ledger, report)
    return report
  } catch (error) {
    const retryInMs = ending.aborted ? 0 : Math.min(retryMsMax, ledger.everyMs)
    // If the store fails here, the next run waits for the lease to expire.
    await call('end ledger', () => ledgers.end(own, { retryInMs })).catch(() => undefined)
    if (!ending.aborted) {
      telemetry.count('reconcile.failed', { detail: `ledger ${ledger.name}` })
      telemetry.report('a ledger comparison failed; it will be retried', { detail: ledger.name, error })
    }
    throw error
  } finally {
    held.stop()
  }
}

async function publishReport(
  { telemetry }: ReconcilerContext,
  ledger: NamedLedger,
  report: LedgerReport,
): Promise<void> {
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
    // The comparison has ended and its counts are stored.
    telemetry.report('the report function of a ledger failed', { detail: name, error })
  }
}

/** Renews the lease; aborts when it is, or may be, lost. */
function holdLease(
  context: ReconcilerContext,
  own: LedgerRun,
  ending: AbortSignal,
): { signal: AbortSignal; stop(): void } {
  const { clock, call } = context
  const ledgers = context.ledgers()
  const over = new AbortController()
  let endsAtMs = clock.monotonicMs() + leaseMs
  let cancel = () => {}
  let stopped = false
  const end = () => over.abort(ending.reason)
  ending.addEventListener('abort', end, { once: true })
  if (ending.aborted) end()
  const renew = async () => {
    const askedAtMs = clock.monotonicMs()
    const renewed = await call('renew ledger', () => ledgers.renew(own, leaseMs)).catch(() => 'failed')
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
    `the lease on the comparison of the ledger ${name} expired, and another process may have taken over`,
  )
}
