/** What settles an unknown, assembled. */
import type { Reconciliation } from '../../../ports/reconciliation.ts'
import type { RunStatement } from '../connection/statement.ts'
import type { Dialect } from '../sql/names.ts'
import { applyCall } from './apply.ts'
import { evidenceCalls } from './keep.ts'
import { lookupCalls } from './look-ups.ts'

export function postgresReconciliation(sql: Dialect, run: RunStatement): Reconciliation {
  return { ...evidenceCalls(sql, run), ...applyCall(sql, run), ...lookupCalls(sql, run) }
}
