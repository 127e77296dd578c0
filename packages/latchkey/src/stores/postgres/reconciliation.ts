/** What settles an unknown, assembled. */
import type { Reconciliation } from '../../ports/reconciliation.ts'
import { applyCall } from './apply.ts'
import type { Dialect } from './dialect.ts'
import { evidenceCalls } from './evidence.ts'
import { ledgerCalls } from './ledgers.ts'
import { lookupCalls } from './lookups.ts'
import type { Run } from './run.ts'

export function postgresReconciliation(sql: Dialect, run: Run): Reconciliation {
  return { ...evidenceCalls(sql, run), ...applyCall(sql, run), ...lookupCalls(sql, run), ...ledgerCalls(sql, run) }
}
