/** The two halves of an atomic operation, inside the transaction that also holds the business rows. */
import type { Outcome } from '../../ports/outcome.ts'
import type { AtomicRequest, GrantedFrom, Reservation } from '../../ports/store.ts'
import type { RawNumber } from '../../sql/record-row.ts'
import { keyRecord, type KeyRow } from './claim.ts'
import { grantedFrom, isExpired, keyWithOutcome, milliseconds, outcomeColumns, readable } from './dialect.ts'
import { recordColumns, recovery, state, storeOutcome, type Dialect } from './dialect.ts'
import { outcomeValues } from './owner.ts'
import type { Run } from './run.ts'

type ReservedRow = KeyRow & { readonly fence: RawNumber; readonly grant_from: GrantedFrom | null }

export interface AtomicCalls {
  reserve(run: Run, request: AtomicRequest): Promise<Reserved>
  record(run: Run, recording: Recording): Promise<'recorded' | 'taken'>
}

export interface Reserved {
  readonly reservation: Reservation
  /** When the transaction began, by the server: what tells it from a later one on the same connection. */
  readonly began: string
}

export interface Recording {
  readonly request: AtomicRequest
  readonly outcome: Outcome
  readonly reservedFence: number
  readonly began: string
}

/** The first 64 bits of the identity, signed. Two identities that share them cost each other a 409, never safety. */
export function lockOf(id: string): string {
  return BigInt.asIntN(64, BigInt(`0x${id.replaceAll('-', '').slice(0, 16)}`)).toString()
}

export function atomicCalls(sql: Dialect): AtomicCalls {
  const texts = { look: lookStatement(sql), record: recordStatement(sql) }
  return {
    async reserve(run, { identity, fingerprint }) {
      const [lock] = await run<LockRow>(
        'select pg_try_advisory_xact_lock($1::bigint) as locked, now()::text as began',
        [lockOf(identity.id)],
      )
      // A statement of its own: the snapshot of the one that took the lock may be older than the winner's commit.
      const [row] = await run<ReservedRow>(texts.look, [identity.id, fingerprint])
      return { reservation: reservationOf(lock?.locked === true, row), began: lock?.began ?? '' }
    },
    async record(run, { request, outcome, reservedFence, began }) {
      const values = [...recordValues(request, reservedFence), ...outcomeValues(outcome), began]
      return (await run(texts.record, values)).length > 0 ? 'recorded' : 'taken'
    },
  }
}

interface LockRow {
  readonly locked: boolean
  readonly began: string
}

/** A finished row is seen with and without the lock: those who replay it do not stand in each other's way. */
function reservationOf(locked: boolean, row: ReservedRow | undefined): Reservation {
  if (row !== undefined && row.grant_from === null) return { kind: 'seen', record: keyRecord(row) }
  if (!locked) return { kind: 'busy' }
  return row === undefined
    ? { kind: 'free', fence: 0, from: 'none' }
    : { kind: 'free', fence: Number(row.fence), from: row.grant_from ?? 'none' }
}

function recordValues({ identity, claimId, ...request }: AtomicRequest, reservedFence: number): readonly unknown[] {
  return [
    identity.id,
    reservedFence,
    claimId,
    request.fingerprint,
    request.retentionMs,
    readable(identity.scope),
    readable(identity.operation),
    request.description === undefined ? null : readable(request.description),
  ]
}

function lookStatement(sql: Dialect): string {
  return `select ${recordColumns(sql)}, ${outcomeColumns}, ${grantedFrom(sql, '$2::bytea')} as grant_from
    from ${keyWithOutcome(sql, '$1')}`
}

/**
 * Atomic with everything else in the transaction. The primary key is the guard, not the advisory lock: whoever comes
 * second waits here for the first to end and then matches no row, because the fence has moved. Under REPEATABLE READ and
 * above the server reports a serialization failure instead, and the transaction is rolled back as a conflict.
 *
 * A handler that sent ROLLBACK itself has ended the transaction that reserved: this statement would then commit alone, an
 * answer without its rows. The beginning of the transaction tells them apart, and nothing is written.
 */
function recordStatement(sql: Dialect): string {
  return `with recorded as (
    insert into ${sql.keys} as k (id, claim_id, fence, created_at, granted_at, completed_at, expires_at,
      attempts, state, recovery, fingerprint, scope, operation, description)
    select $1::uuid, $3::uuid, $2::bigint + 1, t.now, t.now, t.now, t.now + ${milliseconds('$5')},
      1, ${state.completed}, ${recovery.rerun}, $4::bytea, $6::text, $7::text, $8::text
    from (select ${sql.now} as now) t
    where now() = $13::timestamptz
    on conflict (id) do update set
      claim_id = excluded.claim_id,
      fence = k.fence + 1,
      created_at = case when ${isExpired(sql)} then excluded.created_at else k.created_at end,
      granted_at = excluded.granted_at,
      completed_at = excluded.completed_at,
      expires_at = excluded.expires_at,
      locked_until = null,
      due_at = null,
      attempts = case when ${isExpired(sql)} then 1 else k.attempts + 1 end,
      crashes = case when ${isExpired(sql)} then 0 when k.state = ${state.in_progress} then k.crashes + 1 else k.crashes end,
      state = excluded.state,
      recovery = excluded.recovery,
      fingerprint = excluded.fingerprint,
      description = coalesce(excluded.description, case when ${isExpired(sql)} then null else k.description end),
      last_error_code = case when ${isExpired(sql)} then null else k.last_error_code end
    where k.fence = $2::bigint and ${grantedFrom(sql, 'excluded.fingerprint')} is not null
    returning k.id, k.fence
  ), ${storeOutcome(sql, 'recorded', ['$9', '$10', '$11', '$12'])}
  select 1 from recorded`
}
