/** A parked message that is never delivered, and its entry of the audit, without an await in between. */
import type { SkipRequest, SkipResult } from '../../../ports/faculties/admin.ts'
import { skippedEntry } from '../../shared/outbox/skipped.ts'
import { positionOf } from '../outbox/operate.ts'
import { wake } from '../outbox/settle.ts'
import type { Tables } from '../tables.ts'
import { actedBefore, writeEntry } from './act.ts'

export function skip(tables: Tables, request: SkipRequest): SkipResult {
  const before = actedBefore(tables, request.by.requestId)
  if (before !== undefined) return { kind: 'acted', auditId: before, repeated: true }
  const at = positionOf(request.position) ?? 0
  const lane = tables.outbox.lanes.find(({ aside }) => aside.get(at)?.parkedAtMs !== undefined)
  const one = lane?.aside.get(at)
  if (lane === undefined || one === undefined) return { kind: 'not-found' }
  lane.aside.delete(at)
  const { aggregate } = one.message
  if (aggregate !== undefined) wake(lane, aggregate, tables.now())
  return { kind: 'acted', auditId: writeEntry(tables, skippedEntry(request, one.message)), repeated: false }
}
