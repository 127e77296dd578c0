/** The trail: lines that outlive their rows. */
import type { AuditLine, AuditPage, AuditQuery, AuditRecords, Misuse } from '../../../ports/faculties/audit-records.ts'
import type { TakenLines } from '../../../ports/faculties/audit-records.ts'
import type { OwnerResult, Store } from '../../../ports/store.ts'
import { afterText, positionOf, youngestMs } from '../../shared/audit-page.ts'
import { pageSize } from '../../shared/listing.ts'
import type { Tables } from '../tables.ts'

export function memoryAuditRecords<Tx>(tables: Tables, recording: () => Store<Tx>): AuditRecords<Tx> {
  return {
    recording,
    addMisuse: async misuse => addMisuse(tables, misuse),
    page: async query => page(tables, query),
    expire: async which => expire(tables, which),
    take: async which => take(tables, which),
    handedOver: async taken => handedOver(tables, taken),
    giveBack: async ({ run }) => {
      if (tables.trail.sink.run === run) tables.trail.sink.lockedUntilMs = undefined
    },
  }
}

function addMisuse({ rows, trail, now }: Tables, { identity: { id, scope, operation }, fingerprint }: Misuse): void {
  const fence = rows.get(id)?.fence ?? 0
  const line = { atMs: now(), what: 'misuse', scope, operation, id, fence, status: undefined } as const
  trail.add({ ...line, fingerprint: new Uint8Array(fingerprint) })
}

function byTime({ trail }: Tables): readonly AuditLine[] {
  return [...trail.lines.values()].sort(
    (left, right) => left.atMs - right.atMs || Number(left.lineId) - Number(right.lineId),
  )
}

function page(tables: Tables, { scope, id, fromMs, limit, after }: AuditQuery): AuditPage {
  const size = pageSize(limit)
  const [atMs = 0, number = 0] = after === undefined ? [] : positionOf(after).map(Number)
  const found = byTime(tables)
    .filter(line => scope === undefined || line.scope === scope)
    .filter(line => id === undefined || line.id === id)
    .filter(line => fromMs === undefined || line.atMs >= fromMs)
    .filter(line => line.atMs > atMs || (line.atMs === atMs && Number(line.lineId) > number))
  const lines = found.slice(0, size)
  const last = lines.at(-1)
  const next = found.length > size && last !== undefined ? afterText(last.atMs, last.lineId) : undefined
  return { lines: lines.map(copyLine), next }
}

function copyLine(line: AuditLine): AuditLine {
  return { ...line, fingerprint: line.fingerprint && new Uint8Array(line.fingerprint) }
}

function expire(tables: Tables, { olderThanMs, limit }: { olderThanMs: number; limit: number }): number {
  const beforeMs = tables.now() - Math.max(olderThanMs, youngestMs)
  const old = byTime(tables)
    .filter(({ atMs }) => atMs < beforeMs)
    .slice(0, limit)
  for (const { lineId } of old) tables.trail.lines.delete(lineId)
  return old.length
}

function take(tables: Tables, { limit, leaseMs }: { limit: number; leaseMs: number }): TakenLines | undefined {
  const { sink, lines } = tables.trail
  const nowMs = tables.now()
  if (lines.size === 0 || (sink.lockedUntilMs ?? nowMs) > nowMs) return undefined
  sink.run += 1
  sink.lockedUntilMs = nowMs + leaseMs
  return { run: sink.run, lines: byTime(tables).slice(0, limit).map(copyLine) }
}

function handedOver({ trail: { sink, lines } }: Tables, taken: TakenLines): OwnerResult {
  if (sink.run !== taken.run || sink.lockedUntilMs === undefined) return 'claim-lost'
  sink.lockedUntilMs = undefined
  for (const { lineId } of taken.lines) lines.delete(lineId)
  return 'written'
}
