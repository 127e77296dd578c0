/** Erasing what is stored of one tenant, a batch at a time. */
import { type ErasedBatch, type Erasure, type ErasureLeft, isEmpty } from '../../../ports/faculties/erasure.ts'
import { erasedText } from '../../shared/audit-detail.ts'
import type { Row } from '../keys/row.ts'
import type { StoredMessage } from '../outbox/lanes.ts'
import { stepsOf } from '../steps/journal.ts'
import { eraseAdmin } from '../admin/tables.ts'
import type { Tables } from '../tables.ts'

export function memoryErasure(tables: Tables): Erasure {
  return {
    mark: async scope => mark(tables, scope),
    erase: async which => erase(tables, which),
    left: async scope => left(tables, scope),
  }
}

function mark({ erasures, now }: Tables, scope: string): void {
  erasures.set(scope, now())
}

function erase(tables: Tables, { scope, limit }: { scope: string; limit: number }): ErasedBatch {
  const { rows, journals, references, log, outbox, erasures } = tables
  if (!erasures.has(scope)) return { rows: 0, messages: 0, auditTexts: 0, auditLines: 0 }
  const blanked = { auditTexts: blankAudit(tables, scope), auditLines: tables.trail.blank(scope, limit) }
  if (blanked.auditTexts > 0) return { rows: 0, messages: 0, ...blanked }
  const ended = rowsOf(tables, scope)
    .filter(row => hasEnded(tables, row))
    .slice(0, limit)
  for (const { id } of ended) {
    rows.delete(id)
    journals.delete(id)
    references.delete(id)
    tables.admin.notes.delete(id)
    log.dropEvidence(id)
  }
  const delivered = messagesOf(tables, scope)
    .filter(message => isDelivered(tables, message))
    .slice(0, limit)
  for (const { position } of delivered) {
    outbox.messages.delete(position)
    outbox.downstreamIds.delete(position)
  }
  return { rows: ended.length, messages: delivered.length, ...blanked }
}

function left(tables: Tables, scope: string): ErasureLeft {
  const openRows = rowsOf(tables, scope).length
  const waitingMessages = messagesOf(tables, scope).length
  if (openRows === 0 && waitingMessages === 0) tables.erasures.delete(scope)
  return { openRows, waitingMessages }
}

/** For every `reap`: one batch of each erasure that is not at its end. */
export function eraseMarked(tables: Tables, limit: number): number {
  let erased = 0
  for (const scope of [...tables.erasures.keys()]) {
    const batch = erase(tables, { scope, limit })
    erased += batch.rows
    if (isEmpty(batch)) left(tables, scope)
  }
  return erased
}

function rowsOf({ rows, erasures }: Tables, scope: string): readonly Row[] {
  const markedAtMs = erasures.get(scope) ?? 0
  return [...rows.values()].filter(row => row.scope === scope && row.createdAtMs <= markedAtMs)
}

function messagesOf({ outbox, erasures }: Tables, scope: string): readonly StoredMessage[] {
  const markedAtMs = erasures.get(scope) ?? 0
  return [...outbox.messages.values()].filter(each => each.scope === scope && each.createdAtMs <= markedAtMs)
}

function hasEnded(tables: Tables, { id, state, parked }: Row): boolean {
  if (state === 'completed') return true
  return state === 'failed_retryable' && !parked && stepsOf(tables, id).every(step => step.state !== 'open')
}

function isDelivered({ outbox }: Tables, { lane: number, position }: StoredMessage): boolean {
  const lane = outbox.lanes[number]
  return lane !== undefined && !lane.aside.has(position) && !lane.fresh.some(each => each.position === position)
}

function blankAudit(tables: Tables, scope: string): number {
  const { log, outbox } = tables
  const ofMessages = messagesOf(tables, scope).map(({ position }) => position)
  // Evidence about rows that were forgotten: the audit says whose they were.
  for (const id of log.auditedIn(scope)) if (tables.rows.get(id) === undefined) log.dropEvidence(id)
  eraseAdmin(tables, scope)
  let blanked = log.blankAudit(scope)
  for (const position of ofMessages) {
    const redrives = outbox.redrives.get(position) ?? []
    if (redrives.every(({ reason }) => reason === erasedText)) continue
    outbox.redrives.set(
      position,
      redrives.map(each => ({ ...each, reason: erasedText })),
    )
    blanked += redrives.length
  }
  return blanked
}
