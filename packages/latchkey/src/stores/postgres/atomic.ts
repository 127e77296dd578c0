/** The two halves of an atomic operation, inside the transaction that also holds the business rows. */
import type { AtomicRequest, GrantedFrom, Reservation, Transactor } from '../../ports/store.ts'
import type { RawNumber } from '../../sql/record-row.ts'
import { keyRecord, type KeyRow } from './claim.ts'
import { grantedFrom, isExpired, keyWithOutcome, milliseconds, outcomeColumns, readable } from './dialect.ts'
import { recordColumns, recovery, state, storeOutcome, type Dialect } from './dialect.ts'
import { outcomeValues } from './owner.ts'
import type { Run } from './run.ts'

type ReservedRow = KeyRow & { readonly fence: RawNumber; readonly grant_from: GrantedFrom | null }

export interface AtomicCalls {
  reserve(run: Run, request: AtomicRequest): Promise<Reservation>
  record(run: Run, ...rest: Rest<Parameters<Transactor<unknown>['record']>>): Promise<'recorded' | 'taken'>
}

type Rest<Parameters extends readonly unknown[]> = Parameters extends readonly [unknown, ...infer Others]
  ? Others
  : never

/** The first 64 bits of the identity, signed. Two identities that share them cost each other a 409, never safety. */
export function lockOf(id: string): string {
  return BigInt.asIntN(64, BigInt(`0x${id.replaceAll('-', '').slice(0, 16)}`)).toString()
}

export function atomicCalls(sql: Dialect): AtomicCalls {
  const texts = { look: lookStatement(sql), record: recordStatement(sql) }
  return {
    async reserve(run, { identity, fingerprint }) {
      const [lock] = await run<{ locked: boolean }>('select pg_try_advisory_xact_lock($1::bigint) as locked', [
        lockOf(identity.id),
      ])
      if (lock?.locked !== true) return { kind: 'busy' }
      // A statement of its own: the snapshot of the one that took the lock may be older than the winner's commit.
      const [row] = await run<ReservedRow>(texts.look, [identity.id, fingerprint])
      if (row === undefined) return { kind: 'free', fence: 0, from: 'none' }
      if (row.grant_from === null) return { kind: 'seen', record: keyRecord(row) }
      return { kind: 'free', fence: Number(row.fence), from: row.grant_from }
    },
    async record(run, request, outcome, reservedFence) {
      const values = [...recordValues(request, reservedFence), ...outcomeValues(outcome)]
      return (await run(texts.record, values)).length > 0 ? 'recorded' : 'taken'
    },
  }
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
 */
function recordStatement(sql: Dialect): string {
  return `with recorded as (
    insert into ${sql.keys} as k (id, claim_id, fence, created_at, granted_at, completed_at, expires_at,
      attempts, state, recovery, fingerprint, scope, operation, description)
    select $1::uuid, $3::uuid, $2::bigint + 1, t.now, t.now, t.now, t.now + ${milliseconds('$5')},
      1, ${state.completed}, ${recovery.rerun}, $4::bytea, $6::text, $7::text, $8::text
    from (select ${sql.now} as now) t
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
      description = excluded.description,
      last_error_code = case when ${isExpired(sql)} then null else k.last_error_code end
    where k.fence = $2::bigint and ${grantedFrom(sql, 'excluded.fingerprint')} is not null
    returning k.id, k.fence
  ), ${storeOutcome(sql, 'recorded', ['$9', '$10', '$11', '$12'])}
  select 1 from recorded`
}
