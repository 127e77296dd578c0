/**
 * Rows by identity, gathered without a timer: all that are asked for in one turn of the event loop come by one statement,
 * as one text. A driver takes half a microsecond for every value it converts, and a row has twenty.
 */
import type { Clock } from '../../../ports/clock.ts'
import type { KeyRecord } from '../../../ports/store.ts'
import { recordOf, type OutcomeRow, type RecordRow } from '../../shared/record-row.ts'
import { type Connection, untilFree } from '../connection/open.ts'
import { isBusy } from '../connection/errors.ts'
import type { Handle } from '../connection/handle.ts'
import { readRecord } from './row.ts'
import { nowMsSql } from '../migrations/index.ts'

/** At this number they do not wait for the end of the turn. */
const readsMax = 256

/** `found` gets to see the row, and may ask more of the same connection at once. What it throws goes to `failed`. */
export interface RowRead {
  readonly id: string
  found(record: KeyRecord | undefined, handle: Handle): void
  failed(error: unknown): void
}

export interface RowReads {
  join(read: RowRead): void
  /** Does not wait for the end of the turn: unless the file is locked, every read has been answered when this returns. */
  flush(): void
}

export function gatherReads(options: { own: Connection; clock: Clock; waitMs: number }): RowReads {
  const { own, clock, waitMs } = options
  let waiting: RowRead[] = []
  const flush = () => {
    let left: readonly RowRead[] = waiting
    waiting = []
    if (left.length === 0) return
    const run = () => {
      const locked = readTogether(own.handle, left)
      left = locked.map(({ read }) => read)
      if (locked[0] !== undefined) throw locked[0].error
    }
    try {
      run()
    } catch {
      // With patience, should the file be locked.
      untilFree(clock, waitMs, run).catch((error: unknown) => left.forEach(read => read.failed(error)))
    }
  }
  return {
    flush,
    join(read) {
      if (waiting.push(read) === 1) setImmediate(flush)
      else if (waiting.length >= readsMax) flush()
    },
  }
}

/** Gives back those that met a lock, unanswered. A row that cannot be read fails only its own reader. */
function readTogether(handle: Handle, reads: readonly RowRead[]): readonly { read: RowRead; error: unknown }[] {
  const found = findMany(handle, reads)
  const locked: { read: RowRead; error: unknown }[] = []
  for (const read of reads) {
    try {
      read.found(recordIn(handle, read.id, found), handle)
    } catch (error) {
      if (isBusy(error)) locked.push({ read, error })
      else read.failed(error)
    }
  }
  return locked
}

interface FoundRows {
  readonly nowMs: number
  readonly rows: ReadonlyMap<string, FoundRow>
}

/** The columns in the statement's order. Blobs are hexadecimal, which JSON can hold. */
type FoundRow = readonly [
  ...texts: [id: string, scope: string, operation: string, claimId: string, fingerprint: string],
  ...numbers: [state: number, recovery: number, fence: number, attempts: number, crashes: number],
  ...made: [createdAtMs: number, expiresAtMs: number],
  ...instants: [lockedUntilMs: Maybe, dueAtMs: Maybe, completedAtMs: Maybe, parkedAtMs: Maybe, goneAtMs: Maybe],
  ...others: [tombstoneMs: Maybe, description: string | null, lastErrorCode: string | null, outcome: string | null],
]
type Maybe = number | null

// CROSS: the identities first, each found by the index, however many there are of either.
export const readManySql: string = `
  SELECT ${nowMsSql} AS now_ms, json_group_array(json_array(k.id, k.scope, k.operation, k.claim_id, hex(k.fingerprint),
    k.state, k.recovery, k.fence, k.attempts, k.crashes, k.created_at_ms, k.expires_at_ms,
    k.locked_until_ms, k.due_at_ms, k.completed_at_ms, k.parked_at_ms, k.gone_at_ms,
    k.tombstone_ms, k.description, k.last_error_code, CASE WHEN k.outcome IS NOT NULL THEN hex(k.outcome) END)) AS found
  FROM json_each(?1) AS asked CROSS JOIN latchkey_keys AS k ON k.id = asked.value`

function findMany(handle: Handle, reads: readonly RowRead[]): FoundRows {
  // Each row once, however many ask for it.
  const ids = JSON.stringify([...new Set(reads.map(({ id }) => id))])
  const [row] = handle.rows(readManySql, [ids])
  // The statement makes the text, from columns of a STRICT table.
  const found = JSON.parse(String(row?.found)) as readonly FoundRow[]
  return { nowMs: Number(row?.now_ms), rows: new Map(found.map(one => [one[0], one])) }
}

function recordIn(handle: Handle, id: string, { rows, nowMs }: FoundRows): KeyRecord | undefined {
  const row = rows.get(id)
  if (row === undefined) return undefined
  const record = recordOf(columnsOf(row), nowMs)
  // Not kept with its key: a large one, or of the table that held all of them before.
  const isApart = record.state === 'completed' && !record.gone && record.outcome === undefined
  return isApart ? readRecord(handle, id) : record
}

function columnsOf(row: FoundRow): RecordRow & OutcomeRow {
  return {
    id: row[0],
    scope: row[1],
    operation: row[2],
    claim_id: row[3],
    fingerprint: Buffer.from(row[4], 'hex'),
    state: row[5],
    recovery: row[6],
    fence: row[7],
    attempts: row[8],
    crashes: row[9],
    created_at_ms: row[10],
    expires_at_ms: row[11],
    locked_until_ms: row[12],
    due_at_ms: row[13],
    completed_at_ms: row[14],
    parked_at_ms: row[15],
    gone_at_ms: row[16],
    tombstone_ms: row[17],
    description: row[18],
    last_error_code: row[19],
    outcome_packed: row[20] === null ? null : Buffer.from(row[20], 'hex'),
  }
}
