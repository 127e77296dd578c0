/** Evidence that is kept, applied if its row allows it. */
import type { ApplyOptions, ApplyResult, LookupClaim } from '../../../ports/reconciliation.ts'
import type { Row } from '../keys/row.ts'
import { openEffect } from '../steps/journal.ts'
import type { Tables } from '../tables.ts'
import type { NamedEvidence } from './evidence-and-audit.ts'
import { settleUnknown } from './settle.ts'

/**
 * The evidence is of this generation of the row, about what is in doubt there, and of the kind that it needs: the value of the open
 * effect, or an outcome where none is open.
 */
function fits(tables: Tables, row: Row, { atMs, effectRef, found }: NamedEvidence): boolean {
  if (row.state !== 'unknown' || atMs < row.createdAtMs) return false
  const open = openEffect(tables, row)
  if (open === undefined) return effectRef === undefined && !('value' in found)
  return effectRef?.position === open.position && effectRef.epoch === open.epoch && !('outcome' in found)
}

export function apply(tables: Tables, evidenceId: string, options: ApplyOptions): ApplyResult {
  const { rows, log, now } = tables
  const evidence = log.find(evidenceId)
  if (evidence === undefined) return { kind: 'not-applicable', state: undefined }
  if (evidence.applied) return { kind: 'applied-before' }
  const row = rows.get(evidence.id)
  if (options.lookup && !isLooking(row, options.lookup)) return { kind: 'claim-lost' }
  if (row?.doubt === undefined || !fits(tables, row, evidence)) return { kind: 'not-applicable', state: row?.state }
  const quarantineEndMs = row.doubt.sinceMs + options.quarantineMs
  // By when it was found: what was not there within the quarantine may have come since.
  if (evidence.found.kind === 'never-happened' && evidence.atMs < quarantineEndMs) {
    return { kind: 'too-early', leftMs: Math.max(0, quarantineEndMs - now()) }
  }
  const to = settleUnknown(tables, row, { verdict: evidence.found, retentionMs: options.retentionMs })
  log.markApplied(evidence)
  return { kind: 'settled', to }
}

function isLooking(row: Row | undefined, { id, fence, look }: LookupClaim): boolean {
  return row?.id === id && row.fence === fence && row.doubt?.look === look
}

export function waiting(
  tables: Tables,
  { limit }: { limit: number },
): readonly { evidenceId: string; operation: string }[] {
  return [...tables.rows.values()]
    .filter(row => row.state === 'unknown')
    .flatMap(row => tables.log.namedOf(row.id).map(evidence => ({ row, evidence })))
    .filter(({ evidence }) => !evidence.applied && evidence.verdict !== 'never-happened')
    .filter(({ row, evidence }) => fits(tables, row, evidence))
    .sort((left, right) => Number(left.evidence.evidenceId) - Number(right.evidence.evidenceId))
    .slice(0, limit)
    .map(({ row, evidence }) => ({ evidenceId: evidence.evidenceId, operation: row.operation }))
}
