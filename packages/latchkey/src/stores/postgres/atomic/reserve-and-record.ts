/** The two halves of an atomic operation, inside the transaction that also holds the business rows. */
import type { Outcome } from '../../../ports/outcome.ts'
import type { AtomicRequest, GrantedFrom, Reservation } from '../../../ports/store.ts'
import { packedOutcome } from '../../shared/packed-outcome.ts'
import { lineReturned, writeLines } from '../audit/lines.ts'
import type { RawNumber } from '../../shared/record-row.ts'
import { type Fields, prepared, preparedForOne, type RunPrepared } from '../connection/prepared.ts'
import type { RunStatement } from '../connection/statement.ts'
import { type Beginning, commitStatement, type Together } from '../connection/transaction.ts'
import { outcomeValues } from '../keys/complete.ts'
import { keyRecord, type KeyRow, needsNoDecision, readManyStatement, recordOfFields } from '../keys/read.ts'
import {
  areUuids,
  bigints,
  byteas,
  type Column,
  float8s,
  isUuid,
  readable,
  texts as textColumn,
  uuids,
} from '../sql/columns.ts'
import { takeOverValues } from '../sql/values.ts'
import {
  grantedFrom,
  isExpired,
  keyWithOutcome,
  mayTakeOver,
  oneMore,
  outcomeColumns,
  recordColumns,
  state,
  storeOutcome,
} from '../sql/fragments.ts'
import { bytesLiteral, numberLiteral, textLiteral, uuidLiteral } from '../sql/literal.ts'
import type { Dialect } from '../sql/names.ts'
import { recordedColumns, type RecordedRow, recordedValues } from './functions.ts'

type ReservedRow = KeyRow & { readonly fence: RawNumber; readonly grant_from: GrantedFrom | null }

/** Both in the same transaction. */
export interface AtomicRuns {
  /** For calls of functions: a session of ours prepares them once. */
  readonly call: RunPrepared
  readonly run: RunStatement
}

export interface AtomicCalls {
  /** What begins a transaction, with the lock and the read of its first reservation where that is known. */
  begin(first: AtomicRequest | undefined): Beginning
  /** `lock`: the row that the beginning returned. */
  reserve(runs: AtomicRuns, request: AtomicRequest, lock: Fields | undefined): Promise<Reserved>
  record(runs: AtomicRuns, recording: Recording): Promise<'recorded' | 'taken'>
  /** The same for the end of the transaction: it fails where the other returns `taken`. Undefined: only the other can record it. */
  recordLast(recording: Recording): Together | undefined
  /** Whether this is still the transaction that reserved. */
  isSame(runs: AtomicRuns, recording: Recording): Promise<boolean>
}

export interface Reserved {
  readonly reservation: Reservation
  /** When the transaction began, by the server: it tells the transaction apart from a later one on the same connection. */
  readonly began: string
}

export interface Recording {
  readonly request: AtomicRequest
  readonly outcome: Outcome
  readonly reservedFence: number
  readonly began: string
}

/** The first 64 bits of the identity, signed. Two identities that share them cost each other a 409, never safety. */
export function lockOf(id: string): bigint {
  return BigInt.asIntN(64, BigInt(`0x${id.replaceAll('-', '').slice(0, 16)}`))
}

export function atomicCalls(sql: Dialect): AtomicCalls {
  const texts = {
    reserve: prepared('reserve', reserveStatement(sql)),
    readPlain: readManyStatement(sql),
    read: readReservedStatement(sql),
    recordFresh: prepared(
      'record',
      `select ${sql.functions.recordFresh}($1::uuid, $2::uuid, $3::bytea, $4::float8, $5::text, $6::text,
      $7::text, $8::bytea, $9::text) as recorded`,
    ),
    record: recordStatement(sql),
    recordLast: prepared('record_last', recordLastStatement(sql)),
  }
  const begin = preparedForOne<undefined>(prepared('BEGIN', 'BEGIN'), [])(undefined)
  const reserve = preparedForOne(texts.reserve, reserveColumns)
  const recordLast = preparedForOne(texts.recordLast, freshColumns)
  const ahead = [texts.recordLast, commitStatement]
  const lockNow = async (call: RunPrepared, id: string): Promise<Fields> => {
    const [row] = await call<{ readonly reserved: string }>(texts.reserve, [lockOf(id).toString(), id])
    return [row?.reserved]
  }
  return {
    begin(first) {
      const id = first?.identity.id
      if (id === undefined || !isUuid(id))
        return { text: () => 'BEGIN', batches: [begin], ahead, level: '', rest: undefined }
      const rest = () => reserveText(sql, id)
      return { text: () => `BEGIN;${rest()}`, batches: [begin, reserve(id)], ahead, level: '', rest }
    },
    async reserve({ call, run }, { identity, fingerprint, takeOver }, lock) {
      const { locked, found, began } = reservedOf(lock ?? (await lockNow(call, identity.id)))
      if (!found) return { reservation: reservationOf(locked, undefined), began }
      const [read] = await call<object>(texts.readPlain, [`{${identity.id}}`])
      const record = read && recordOfFields(Object.values(read))
      // A finished row is seen with and without the lock: replays do not hold each other up.
      if (record !== undefined && needsNoDecision(record)) return { reservation: { kind: 'seen', record }, began }
      const [reserved] = await run<ReservedRow>(texts.read, [identity.id, fingerprint, ...takeOverValues(takeOver)])
      return { reservation: reservationOf(locked, reserved), began }
    },
    async record({ call, run }, { request, outcome, reservedFence, began }) {
      const packed = freshOutcome({ request, outcome, reservedFence })
      if (packed !== undefined) {
        const [row] = await call<{ readonly recorded: boolean }>(texts.recordFresh, freshValues(request, packed, began))
        return row?.recorded === true ? 'recorded' : 'taken'
      }
      const values = [
        ...recordValues(request, reservedFence),
        ...outcomeValues(outcome, reservedFence + 1),
        began,
        request.tombstoneMs ?? null,
      ]
      return (await run(texts.record, values)).length > 0 ? 'recorded' : 'taken'
    },
    async isSame({ run }, { began }) {
      const [row] = await run<{ readonly same: boolean }>('select now() = $1::timestamptz as same', [began])
      return row?.same === true
    },
    recordLast({ request, outcome, reservedFence, began }) {
      const packed = freshOutcome({ request, outcome, reservedFence })
      if (packed === undefined) return undefined
      const text = () => `select ${sql.functions.recordLast}(${freshLiterals(request, packed, began)})`
      // What is no uuid is refused by the server, and names it.
      return areUuids({ id: request.identity.id, claimId: request.claimId })
        ? { text, batches: [recordLast({ request, packed, began })] }
        : { text }
    },
  }
}

/** What the function can record: a new identity, a small outcome, no tombstone after it. */
function freshOutcome({ request, outcome, reservedFence }: Omit<Recording, 'began'>): Buffer | undefined {
  return reservedFence === 0 && request.tombstoneMs === undefined ? packedOutcome(outcome, 1) : undefined
}

function reserveStatement({ functions }: Dialect): string {
  return `select ${functions.reserve}($1::bigint, $2::uuid) as reserved`
}

const reserveColumns: readonly Column<string>[] = [bigints(lockOf), uuids(id => id)]

function reserveText({ functions }: Dialect, id: string): string {
  return `select ${functions.reserve}('${lockOf(id)}', ${uuidLiteral(id)}) as reserved`
}

/** As the function writes it. */
function reservedOf([reserved]: Fields): { locked: boolean; found: boolean; began: string } {
  const text = typeof reserved === 'string' ? reserved : 'ff'
  return { locked: text[0] === 't', found: text[1] === 't', began: text.slice(2) }
}

/** A finished row is seen with and without the lock: replays do not hold each other up. */
function reservationOf(locked: boolean, row: ReservedRow | undefined): Reservation {
  if (row !== undefined && row.grant_from === null) return { kind: 'seen', record: keyRecord(row) }
  if (!locked) return { kind: 'busy' }
  return row === undefined
    ? { kind: 'free', fence: 0, from: 'none' }
    : { kind: 'free', fence: Number(row.fence), from: row.grant_from ?? 'none' }
}

function freshValues(request: AtomicRequest, packed: Buffer, began: string): unknown[] {
  return [request.identity.id, ...requestValues(request), packed, began]
}

function requestValues({ identity, claimId, fingerprint, retentionMs, description }: AtomicRequest): unknown[] {
  const described = description === undefined ? null : readable(description)
  return [claimId, fingerprint, retentionMs, readable(identity.scope), readable(identity.operation), described]
}

interface FreshRecord {
  readonly request: AtomicRequest
  readonly packed: Buffer
  readonly began: string
}

function recordLastStatement({ functions }: Dialect): string {
  return `select ${functions.recordLast}($1::uuid, $2::uuid, $3::bytea, $4::float8, $5::text, $6::text, $7::text, $8::bytea, $9::text)`
}

/** In the order of `freshValues`. */
const freshColumns: readonly Column<FreshRecord>[] = [
  uuids(({ request }) => request.identity.id),
  uuids(({ request }) => request.claimId),
  byteas(({ request }) => request.fingerprint),
  float8s(({ request }) => request.retentionMs),
  textColumn(({ request }) => readable(request.identity.scope)),
  textColumn(({ request }) => readable(request.identity.operation)),
  textColumn(({ request }) => (request.description === undefined ? null : readable(request.description))),
  byteas(({ packed }) => packed),
  textColumn(({ began }) => began),
]

/** In the order of `freshValues`. */
function freshLiterals(request: AtomicRequest, packed: Buffer, began: string): string {
  const { identity } = request
  return [
    uuidLiteral(identity.id),
    uuidLiteral(request.claimId),
    bytesLiteral(request.fingerprint),
    numberLiteral(request.retentionMs),
    textLiteral(readable(identity.scope)),
    textLiteral(readable(identity.operation)),
    textLiteral(request.description === undefined ? null : readable(request.description)),
    bytesLiteral(packed),
    textLiteral(began),
  ].join(', ')
}

function recordValues(request: AtomicRequest, reservedFence: number): readonly unknown[] {
  return [request.identity.id, reservedFence, ...requestValues(request)]
}

function readReservedStatement(sql: Dialect): string {
  return `select ${recordColumns(sql)}, ${outcomeColumns}, ${grantedFrom(sql, '$2::bytea', mayTakeOver('$3', '$4'))} as grant_from
    from ${keyWithOutcome(sql, '$1')}`
}

/** By the parameters of `recordValues`. */
const anyRow: RecordedRow = {
  id: '$1::uuid',
  claimId: '$3::uuid',
  fence: '$2::bigint + 1',
  now: 't.now',
  retentionMs: '$5',
  fingerprint: '$4::bytea',
  scope: '$6::text',
  operation: '$7::text',
  description: '$8::text',
}

/**
 * Atomic with everything else in the transaction. The primary key is the guard, not the advisory lock: the
 * second transaction waits here for the first to end and then matches no row, because the fence has moved. Under REPEATABLE READ and
 * above the server reports a serialization failure instead, and the transaction is rolled back as a conflict.
 *
 * A handler that sent ROLLBACK itself has ended the transaction that reserved: this statement would then commit alone, an
 * answer without its rows. It compares when the transaction began, and writes nothing in another one.
 */
function recordStatement(sql: Dialect): string {
  return `with recorded as (
    insert into ${sql.keys} as k (${recordedColumns}, tombstone_ms, outcome)
    select ${recordedValues(anyRow)}, $15::float8::bigint, $13::bytea
    from (select ${sql.now} as now) t
    where pg_catalog.now() = $14::timestamptz
    on conflict (id) do update set
      claim_id = excluded.claim_id,
      fence = k.fence + 1,
      created_at = case when ${isExpired(sql)} then excluded.created_at else k.created_at end,
      granted_at = case when ${isExpired(sql)} then null else excluded.created_at end,
      completed_at = excluded.completed_at,
      expires_at = excluded.expires_at,
      locked_until = null,
      due_at = null,
      attempts = case when ${isExpired(sql)} then 1 else ${oneMore('k.attempts')} end,
      crashes = case when ${isExpired(sql)} then 0 when k.state = ${state.in_progress} then ${oneMore('k.crashes')} else k.crashes end,
      state = excluded.state,
      recovery = excluded.recovery,
      fingerprint = excluded.fingerprint,
      outcome = excluded.outcome,
      description = coalesce(excluded.description, case when ${isExpired(sql)} then null else k.description end),
      last_error_code = case when ${isExpired(sql)} then null else k.last_error_code end,
      tombstone_ms = excluded.tombstone_ms,
      gone_at = null
    where k.fence = $2::bigint and ${grantedFrom(sql, 'excluded.fingerprint')} is not null
    returning k.id, k.fence${lineReturned(sql)}
  ), ${storeOutcome(sql, 'recorded', ['$9', '$10', '$11', '$12', '$13'])}${writeLines(sql, 'recorded', '$9')}
  select 1 from recorded`
}
