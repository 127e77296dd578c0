/** Runs of ledger comparisons: one at a time under each name, by number and lease. */
import type { LastLedgerRun, LedgerRun, Ledgers } from '../../../ports/reconciliation.ts'
import type { OwnerResult } from '../../../ports/store.ts'
import { ledgerDueInMs } from '../../shared/ledger-run.ts'
import type { Tables } from '../tables.ts'

type BeginResult = Awaited<ReturnType<Ledgers['begin']>>
type LedgerEnd = Parameters<Ledgers['end']>[1]

export function beginLedger(
  { ledgers, now }: Tables,
  name: string,
  { everyMs, leaseMs }: { everyMs: number; leaseMs: number },
): BeginResult {
  const before = ledgers.get(name)
  const inMs = before === undefined ? 0 : ledgerDueInMs(before, everyMs, now())
  if (inMs > 0) return { kind: 'not-due', inMs }
  const run = (before?.run ?? 0) + 1
  const times = { beganAtMs: now(), heldUntilMs: now() + leaseMs, retryAtMs: undefined }
  ledgers.set(name, { run, ...times, last: before?.last })
  return { kind: 'begun', run: { name, run } }
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
  // Ended before: the reply to the first write was lost.
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
