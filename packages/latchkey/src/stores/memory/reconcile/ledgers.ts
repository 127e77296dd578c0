/** Runs of ledger comparisons: one at a time under each name, by number and lease. */
import type { LastLedgerRun, LedgerRun, Reconciliation } from '../../../ports/reconciliation.ts'
import type { OwnerResult } from '../../../ports/store.ts'
import type { Ledger, Tables } from '../tables.ts'

type Begun = Awaited<ReturnType<Reconciliation['beginLedger']>>
type LedgerEnd = Parameters<Reconciliation['endLedger']>[1]

export function beginLedger(
  { ledgers, now }: Tables,
  name: string,
  { everyMs, leaseMs }: { everyMs: number; leaseMs: number },
): Begun {
  const before = ledgers.get(name)
  const inMs = before === undefined ? 0 : dueAtMs(before, everyMs) - now()
  if (inMs > 0) return { kind: 'not-due', inMs }
  const run = (before?.run ?? 0) + 1
  const begun = { run, beganAtMs: now(), heldUntilMs: now() + leaseMs, retryAtMs: undefined, last: before?.last }
  ledgers.set(name, begun)
  return { kind: 'begun', run: { name, run } }
}

/** A run that failed comes again sooner; one that is asked for at once need not wait for that either. */
function dueAtMs({ beganAtMs, heldUntilMs = 0, retryAtMs = Infinity }: Ledger, everyMs: number): number {
  return Math.max(heldUntilMs, Math.min(beganAtMs + everyMs, retryAtMs))
}

export function renewLedger({ ledgers, now }: Tables, { name, run }: LedgerRun, leaseMs: number): OwnerResult {
  const ledger = ledgers.get(name)
  if (ledger?.run !== run || ledger.heldUntilMs === undefined) return 'claim-lost'
  ledgers.set(name, { ...ledger, heldUntilMs: now() + leaseMs })
  return 'written'
}

export function endLedger({ ledgers, now }: Tables, { name, run }: LedgerRun, end: LedgerEnd): OwnerResult {
  const ledger = ledgers.get(name)
  if (ledger?.run !== run) return 'claim-lost'
  // Ended before: the reply to the same word was lost.
  if (ledger.heldUntilMs === undefined) return 'written'
  const ended = { ...ledger, heldUntilMs: undefined }
  if ('counts' in end) ledgers.set(name, { ...ended, last: { ...end.counts, finishedAtMs: now() } })
  else ledgers.set(name, { ...ended, retryAtMs: now() + end.retryInMs })
  return 'written'
}

export function lastLedger({ ledgers, now }: Tables, name: string): LastLedgerRun | undefined {
  const last = ledgers.get(name)?.last
  if (last === undefined) return undefined
  const { finishedAtMs, ...counts } = last
  return { ...counts, finishedAgoMs: now() - finishedAtMs }
}
