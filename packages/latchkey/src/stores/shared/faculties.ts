import type { Faculty, OperationKind } from '../../ports/store.ts'

/** Of a store that carries everything. */
export const everyKind: readonly OperationKind[] = ['guarded', 'atomic', 'phased', 'deferred']

export const everyFaculty: readonly Faculty[] = [
  'transactions',
  'steps',
  'phases',
  'outbox',
  'reconciliation',
  'ledgers',
  'values',
  'erasure',
  'auditRecords',
  'quotas',
  'inbox',
  'references',
  'admin',
]
