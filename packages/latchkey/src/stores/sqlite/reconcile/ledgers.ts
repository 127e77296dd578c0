/** Runs of ledger comparisons: one at a time under each name, by number and lease. */
import type { LastLedgerRun, LedgerCounts, LedgerRun, Ledgers } from '../../../ports/reconciliation.ts'
import type { OwnerResult } from '../../../ports/store.ts'
import { ledgerDueInMs, type LedgerTimes } from '../../shared/ledger-run.ts'
import type { SqliteRow } from '../driver.ts'
import type { Handle } from '../connection/handle.ts'
import { readNowMs, storable } from '../keys/row.ts'

type BeginResult = Awaited<ReturnType<Ledgers['begin']>>
type LedgerEnd = Parameters<Ledgers['end']>[1]

const runSql = 'SELECT run, began_at_ms, held_until_ms, retry_at_ms FROM latchkey_ledger_runs WHERE name = ?1'
const beginSql = `
  INSERT INTO latchkey_ledger_runs AS r (name, run, began_at_ms, held_until_ms) VALUES (?1, 1, ?2, ?3)
  ON CONFLICT (name) DO UPDATE SET run = r.run + 1, began_at_ms = ?2, held_until_ms = ?3, retry_at_ms = NULL
  RETURNING run`

export function beginLedger(
  handle: Handle,
  name: string,
  { everyMs, leaseMs }: { everyMs: number; leaseMs: number },
): BeginResult {
  const nowMs = readNowMs(handle)
  const [last] = handle.rows(runSql, [storable(name)])
  if (last !== undefined) {
    const inMs = ledgerDueInMs(timesOf(last), everyMs, nowMs)
    if (inMs > 0) return { kind: 'not-due', inMs }
  }
  const [begun] = handle.rows(beginSql, [storable(name), nowMs, Math.ceil(nowMs + leaseMs)])
  return { kind: 'begun', run: { name, run: Number(begun?.run) } }
}

function timesOf(row: SqliteRow): LedgerTimes {
  const instant = (value: unknown) => (value === null ? undefined : Number(value))
  return {
    beganAtMs: Number(row.began_at_ms),
    heldUntilMs: instant(row.held_until_ms),
    retryAtMs: instant(row.retry_at_ms),
  }
}

const renewSql = `
  UPDATE latchkey_ledger_runs SET held_until_ms = ?3 WHERE name = ?1 AND run = ?2 AND held_until_ms IS NOT NULL
  RETURNING run`

export function renewLedger(handle: Handle, { name, run }: LedgerRun, leaseMs: number): OwnerResult {
  const untilMs = Math.ceil(readNowMs(handle) + leaseMs)
  return handle.rows(renewSql, [storable(name), run, untilMs]).length === 1 ? 'written' : 'claim-lost'
}

const finishSql = `
  UPDATE latchkey_ledger_runs SET held_until_ms = NULL, finished_at_ms = ?3,
    compared = ?4, missing = ?5, extra = ?6, different = ?7, settled = ?8
  WHERE name = ?1 AND run = ?2 AND held_until_ms IS NOT NULL
  RETURNING run`
const failSql = `
  UPDATE latchkey_ledger_runs SET held_until_ms = NULL, retry_at_ms = ?3
  WHERE name = ?1 AND run = ?2 AND held_until_ms IS NOT NULL
  RETURNING run`
const isLastSql = 'SELECT run FROM latchkey_ledger_runs WHERE name = ?1 AND run = ?2'

export function endLedger(handle: Handle, { name, run }: LedgerRun, end: LedgerEnd): OwnerResult {
  const owner = [storable(name), run]
  const nowMs = readNowMs(handle)
  const ended =
    'counts' in end
      ? handle.rows(finishSql, [...owner, nowMs, ...countsOf(end.counts)])
      : handle.rows(failSql, [...owner, Math.ceil(nowMs + end.retryInMs)])
  if (ended.length === 1) return 'written'
  // Ended before: the reply to the first write was lost.
  return handle.rows(isLastSql, owner).length === 1 ? 'written' : 'claim-lost'
}

function countsOf({ compared, missing, extra, different, settled }: LedgerCounts): readonly number[] {
  return [compared, missing, extra, different, settled]
}

const lastSql = `
  SELECT finished_at_ms, compared, missing, extra, different, settled FROM latchkey_ledger_runs
  WHERE name = ?1 AND finished_at_ms IS NOT NULL`

export function lastLedger(handle: Handle, name: string): LastLedgerRun | undefined {
  const [row] = handle.rows(lastSql, [storable(name)])
  if (row === undefined) return undefined
  return {
    finishedAgoMs: readNowMs(handle) - Number(row.finished_at_ms),
    compared: Number(row.compared),
    missing: Number(row.missing),
    extra: Number(row.extra),
    different: Number(row.different),
    settled: Number(row.settled),
  }
}
