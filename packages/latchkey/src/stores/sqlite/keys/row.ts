/** One key's row: reading it, and writing it whole. */
import type { ClaimRequest, KeyRecord, ReadableRecord } from '../../../ports/store.ts'
import { recoveryCodes, stateCodes } from '../../shared/codes.ts'
import { type OutcomeRow, recordOf, type RecordRow } from '../../shared/record-row.ts'
import type { SqliteRow } from '../driver.ts'
import type { Handle } from '../connection/handle.ts'
import { nowMsSql } from '../migrations/index.ts'

export const keyColumns: string = [
  'k.id, k.scope, k.operation, k.state, k.recovery, k.fingerprint, k.fence, k.claim_id, k.attempts, k.crashes',
  'k.locked_until_ms, k.due_at_ms, k.created_at_ms, k.completed_at_ms, k.expires_at_ms, k.parked_at_ms',
  'k.tombstone_ms, k.gone_at_ms, k.description, k.last_error_code',
].join(', ')

/** A code of a newer version: what may happen to the row is not known here. */
export const foreignRecoverySql: string = `recovery NOT IN (${Object.values(recoveryCodes).join(', ')})`

const readSql = `
  SELECT ${nowMsSql} AS now_ms, ${keyColumns}, o.status AS outcome_status, o.version AS outcome_version,
         o.headers AS outcome_headers, o.body AS outcome_body, k.outcome AS outcome_packed
  FROM latchkey_keys AS k LEFT JOIN latchkey_outcomes AS o ON o.id = k.id AND o.fence = k.fence
  WHERE k.id = ?1`

export function readRecord(handle: Handle, id: string): KeyRecord | undefined {
  const [row] = handle.rows(readSql, [id])
  return row && recordFrom(row)
}

/** A row of `keyColumns` and `now_ms`, with or without the outcome's. */
export function recordFrom(row: SqliteRow): KeyRecord {
  // The tables are STRICT and the columns are named as RecordRow has them: SQLite has checked every type on the way in.
  return recordOf(row as unknown as RecordRow & OutcomeRow, Number(row.now_ms))
}

export function readNowMs(handle: Handle): number {
  return handle.nowMs?.() ?? Number(handle.rows(`SELECT ${nowMsSql} AS now_ms`)[0]?.now_ms)
}

/** What a grant, an atomic answer or deferred work begins with. Instants, because the caller read the store's clock in the same transaction. */
export interface NewRow extends Pick<
  ReadableRecord,
  'id' | 'scope' | 'operation' | 'recovery' | 'fingerprint' | 'fence' | 'claimId' | 'attempts' | 'crashes'
> {
  readonly state: 'pending' | 'in_progress' | 'completed'
  readonly lockedUntilMs: number | undefined
  readonly dueAtMs: number | undefined
  readonly createdAtMs: number
  readonly completedAtMs: number | undefined
  readonly expiresAtMs: number
  readonly tombstoneMs: number | undefined
  readonly description: string | undefined
  readonly lastErrorCode: string | undefined
  /** A small outcome of its owner; only of a completed row. */
  readonly packed?: Uint8Array | undefined
}

const putSql = `
  REPLACE INTO latchkey_keys (id, scope, operation, state, recovery, fingerprint, fence, claim_id, attempts, crashes,
    locked_until_ms, due_at_ms, created_at_ms, completed_at_ms, expires_at_ms, tombstone_ms, description, last_error_code,
    outcome)
  VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)`

/** What was there before is gone, its outcome too. */
export function putRow(handle: Handle, row: NewRow): void {
  handle.run(putSql, [
    row.id,
    storable(row.scope),
    storable(row.operation),
    stateCodes[row.state],
    recoveryCodes[row.recovery],
    row.fingerprint,
    row.fence,
    row.claimId,
    row.attempts,
    row.crashes,
    wholeOrNull(row.lockedUntilMs),
    row.dueAtMs ?? null,
    row.createdAtMs,
    row.completedAtMs ?? null,
    Math.ceil(row.expiresAtMs),
    wholeOrNull(row.tombstoneMs),
    storableOrNull(row.description),
    storableOrNull(row.lastErrorCode),
    row.packed ?? null,
  ])
}

// Literals for all that a new row has in common with the others: every value that is bound costs as much as a check.
const addOwnedSql = `
  INSERT INTO latchkey_keys (id, scope, operation, state, recovery, fingerprint, fence, claim_id, attempts, crashes,
    locked_until_ms, created_at_ms, expires_at_ms, tombstone_ms, description)
  VALUES (?1, ?2, ?3, ${stateCodes.in_progress}, ?4, ?5, 1, ?6, 1, 0, ?7, ?8, ?9, ?10, ?11)
  ON CONFLICT (id) DO NOTHING`

/** The first grant of a new key. False: there is a row. */
export function addOwned(handle: Handle, request: ClaimRequest, nowMs: number): boolean {
  const { identity, recovery, fingerprint, claimId, leaseMs, expiresInMs, tombstoneMs, description } = request
  const written = handle.run(addOwnedSql, [
    identity.id,
    storable(identity.scope),
    storable(identity.operation),
    recoveryCodes[recovery],
    fingerprint,
    claimId,
    Math.ceil(nowMs + leaseMs),
    nowMs,
    Math.ceil(nowMs + expiresInMs),
    wholeOrNull(tombstoneMs),
    storableOrNull(description),
  ])
  return written > 0
}

/** libsql ends a text at U+0000. These texts are for people, so they get to see that something stood there. */
export function storable(text: string): string {
  return text.replaceAll('\0', '\u2400')
}

function storableOrNull(text: string | undefined): string | null {
  return text === undefined ? null : storable(text)
}

function wholeOrNull(ms: number | undefined): number | null {
  return ms === undefined ? null : Math.ceil(ms)
}
