/** The lines of the trail, and the tables that write them. */
import type { AuditedEnd, AuditLine } from '../../../ports/faculties/audit-records.ts'
import type { Row } from '../keys/row.ts'
import type { Table } from '../table.ts'
import type { Writable } from '../tables.ts'

export type NewLine = Omit<AuditLine, 'lineId'>

export interface Trail {
  /** In the order in which they were committed. */
  readonly lines: Map<string, AuditLine>
  readonly sink: { run: number; lockedUntilMs: number | undefined }
  add(line: NewLine): void
  /** At most `limit`; returns how many lost their scope. */
  blank(scope: string, limit: number): number
}

export function trail(): Trail {
  const lines = new Map<string, AuditLine>()
  let numbers = 0
  return {
    lines,
    sink: { run: 0, lockedUntilMs: undefined },
    add(line) {
      const lineId = String((numbers += 1))
      lines.set(lineId, { ...line, lineId })
    },
    blank(scope, limit) {
      const named = [...lines.values()].filter(line => line.scope === scope).slice(0, limit)
      for (const line of named) lines.set(line.lineId, { ...line, scope: undefined, fingerprint: undefined })
      return named.length
    },
  }
}

/** The same tables: a row that is written as ended, or out of unknown, adds its line. In a draft, both are there after the commit or neither is. */
export function recordingTables<T extends Writable>(tables: T): T {
  const rows: Table<Row> = {
    get: id => tables.rows.get(id),
    set(id, row) {
      const before = tables.rows.get(id)
      tables.rows.set(id, row)
      const what = endOf(before, row)
      if (what !== undefined) tables.addLine(lineOf(row, what, tables.now()))
    },
    delete: id => tables.rows.delete(id),
    entries: () => tables.rows.entries(),
    values: () => tables.rows.values(),
  }
  return { ...tables, rows }
}

function endOf(before: Row | undefined, { state, fence, parked }: Row): AuditedEnd | undefined {
  // A mark, an expiry or a look-up that changes: the execution had ended before.
  if (state === 'in_progress' || (before?.state === state && before.fence === fence)) return undefined
  if (state === 'completed' || state === 'unknown') return state
  if (state === 'pending') return before?.state === 'unknown' ? 'resumed' : undefined
  return parked ? 'parked' : 'failed'
}

function lineOf(row: Row, what: AuditedEnd, atMs: number): NewLine {
  const { id, fence, scope, operation, outcome } = row
  const status = what === 'completed' ? outcome?.status : undefined
  return { atMs, what, scope, operation, id, fence, status, fingerprint: new Uint8Array(row.fingerprint) }
}
