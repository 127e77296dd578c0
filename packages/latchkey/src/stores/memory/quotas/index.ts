/** Tokens that the Latchkeys of one process share, and what a scope has in memory. */
import type { Leased, Quotas, ScopeRows, Tokens } from '../../../ports/faculties/quotas.ts'
import { credit, debit } from '../../shared/token-bucket.ts'
import type { Row } from '../keys/row.ts'
import type { Tables } from '../tables.ts'

export function memoryQuotas(tables: Tables): Quotas {
  return {
    lease: async asked => lease(tables, asked),
    giveBack: async unused => giveBack(tables, unused),
    prune: async ({ limit }) => prune(tables, limit),
    openKeys: async ({ max, ...which }) =>
      Math.min(max, rowsOf(tables, which).filter(({ state }) => state !== 'completed').length),
    storedBytes: async which => rowsOf(tables, which).reduce((sum, row) => sum + bytesOf(tables, row), 0),
  }
}

function lease({ buckets, now }: Tables, asked: Tokens): Leased {
  const { bucket, leased } = debit(buckets.get(asked.bucket), asked, now())
  buckets.set(asked.bucket, bucket)
  return leased
}

function giveBack({ buckets, now }: Tables, unused: Tokens): void {
  const stored = buckets.get(unused.bucket)
  if (stored !== undefined) buckets.set(unused.bucket, credit(stored, unused, now()))
}

function prune({ buckets, now }: Tables, limit: number): number {
  const full = [...buckets].filter(([, { fullAtMs }]) => fullAtMs <= now()).slice(0, limit)
  for (const [name] of full) buckets.delete(name)
  return full.length
}

function rowsOf({ rows }: Tables, { scope, operation }: ScopeRows): readonly Row[] {
  return [...rows.values()].filter(
    row => row.scope === scope && (operation === undefined || row.operation === operation),
  )
}

function bytesOf({ journals }: Tables, { id, outcome }: Row): number {
  const headers = outcome === undefined ? 0 : Buffer.byteLength(JSON.stringify(outcome.headers))
  return headers + (outcome?.body?.byteLength ?? 0) + Buffer.byteLength(journals.get(id)?.input?.input ?? '')
}
