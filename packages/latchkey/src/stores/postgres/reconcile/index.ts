/** What settles an unknown, assembled. */
import type { Reconciliation } from '../../../ports/reconciliation.ts'
import { applyCall } from './apply.ts'
import type { Dialect } from '../sql/names.ts'
import { evidenceCalls } from './keep.ts'
import { ledgerCalls } from './ledgers.ts'
import { lookupCalls } from './look-ups.ts'
import type { Run } from '../connection/statement.ts'

export function postgresReconciliation(sql: Dialect, run: Run): Reconciliation {
  return { ...evidenceCalls(sql, run), ...applyCall(sql, run), ...lookupCalls(sql, run), ...ledgerCalls(sql, run) }
}
