/** Claims and reads: the two calls of every request. */
import { LatchkeyError } from '../../../ports/errors.ts'
import type { ClaimRequest, ClaimResult, GrantedFrom, KeyRecord, Store } from '../../../ports/store.ts'
import { recordOf, type OutcomeRow, type RawNumber, type RecordRow } from '../../shared/record-row.ts'
import { grantedFrom, keyWithOutcome, mayTakeOver, milliseconds, outcomeColumns } from '../sql/fragments.ts'
import { readable } from '../sql/values.ts'
import { recordColumns, recovery, state } from '../sql/fragments.ts'
import { takeOverValues } from '../sql/values.ts'
import type { Dialect } from '../sql/names.ts'
import { beginJournal, newJournal, readJournal, workValues } from '../steps/journal.ts'
import type { Run } from '../connection/statement.ts'

export type KeyRow = RecordRow & OutcomeRow & { readonly now_ms: RawNumber }

/** Null in `id`: there was no row. Null in `won_fence`: nothing was granted. */
type ClaimRow = {
  readonly won_fence: RawNumber | null
  readonly won_attempts: RawNumber
  readonly won_crashes: RawNumber
  readonly grant_from: GrantedFrom | null
} & (KeyRow | { readonly id: null })

type Won = Extract<ClaimResult, { kind: 'won' }>

/**
 * Each repetition means that another claim, sweep or release of the same identity committed in the milliseconds between;
 * each of them changes what the next look sees.
 */
const looksMax = 20

export function claimCalls(sql: Dialect, run: Run): Pick<Store, 'claim' | 'read'> {
  const texts = {
    claim: claimStatement(sql),
    withJournal: claimStatement(sql, 'with journal'),
    read: readStatement(sql),
  }
  const journalOf = readJournal(sql, run)
  async function withJournal(won: Won, { recovery, work }: ClaimRequest): Promise<Won> {
    if (recovery !== 'resume') return won
    if (won.from === 'none' || won.from === 'expired') return work ? { ...won, journal: newJournal(work) } : won
    // Ours now: nobody else writes to it between the grant and this look.
    const journal = await journalOf(won.claim.id)
    return journal ? { ...won, journal } : won
  }
  return {
    async claim(request) {
      let needsJournal = request.recovery === 'resume'
      for (let looks = 0; looks < looksMax; looks += 1) {
        const values = claimValues(request)
        const [row] = await (needsJournal
          ? run<ClaimRow>(texts.withJournal, [...values, ...workValues(request.work)])
          : run<ClaimRow>(texts.claim, values))
        const result = row && claimResult(request, row)
        if (result !== undefined) return result.kind === 'won' ? withJournal(result, request) : result
        needsJournal ||= row?.grant_from === 'expired'
      }
      throw new LatchkeyError(
        'store-unavailable',
        `the row of identity ${request.identity.id} changed under each of ${looksMax} looks: try again`,
      )
    },
    async read(id) {
      const [row] = await run<KeyRow>(texts.read, [id])
      return row && keyRecord(row)
    },
  }
}

export function keyRecord(row: KeyRow): KeyRecord {
  return recordOf(row, Number(row.now_ms))
}

export function readStatement(sql: Dialect): string {
  return `select ${recordColumns(sql)}, ${outcomeColumns} from ${keyWithOutcome(sql, '$1')}`
}

/** By a function, so that the plan is kept. Without what lies apart: a large outcome is not among its columns. */
export function readManyStatement(sql: Dialect): string {
  return `select ${recordColumns(sql)}, k.outcome as outcome_packed from ${sql.functions.readMany}($1::uuid[]) k`
}

/** Nothing but to be seen: running, finished with its outcome at hand, or unreadable. A large outcome is not. */
export function isPlain(record: KeyRecord): boolean {
  if (record.state === 'unreadable') return !record.expired
  if (record.state === 'in_progress') return record.leaseLeftMs > 0
  return record.state === 'completed' && !record.expired && record.outcome !== undefined
}

function claimResult(request: ClaimRequest, row: ClaimRow): ClaimResult | undefined {
  if (row.won_fence !== null) {
    const claim = { id: request.identity.id, fence: Number(row.won_fence), claimId: request.claimId }
    const [attempt, crashes] = [Number(row.won_attempts), Number(row.won_crashes)]
    return { kind: 'won', claim, attempt, crashes, from: row.grant_from ?? 'none' }
  }
  // Absent or grantable when looked at, and yet not granted: another transaction committed in between. Look again.
  if (row.id === null || row.grant_from !== null) return undefined
  return { kind: 'seen', record: keyRecord(row) }
}

/** Without what a batch of one does not write. */
export function plainClaimValues(request: ClaimRequest): readonly unknown[] {
  const { identity } = request
  return [
    identity.id,
    request.claimId,
    request.fingerprint,
    recovery[request.recovery],
    request.leaseMs,
    request.expiresInMs,
    readable(identity.scope),
    readable(identity.operation),
    request.description === undefined ? null : readable(request.description),
  ]
}

function claimValues(request: ClaimRequest): readonly unknown[] {
  return [...plainClaimValues(request), request.tombstoneMs ?? null, ...takeOverValues(request.takeOver)]
}

/**
 * One round trip. Atomic because the primary key is the arbiter: of any number of inserts one wins, and an existing row is
 * locked and compared again (same fence, state and lease as seen, still grantable) before it changes hands. The lease stands for the steps: each
 * write to them moves it, so that while it stands still the intents are those that the statement's snapshot shows.
 * A row that is not grantable is only read: the insert gets no input row, so a replay locks and writes nothing.
 * The statement keeps one snapshot: a row committed after it is met by the insert but not by the look. Then neither part
 * returns anything, and the caller repeats with a new snapshot.
 * Without the journal's parts, which every claim would have to plan, an expired row is not granted: it may have one.
 */
export function claimStatement(sql: Dialect, journal?: 'with journal'): string {
  const expired = `(select s.grant_from from seen s) = 'expired'`
  const fresh = `coalesce(${expired}, true)`
  const hands = mayTakeOver('$11', '$12')
  return `with seen as materialized (
    select ${recordColumns(sql)}, ${outcomeColumns}, ${grantedFrom(sql, '$3::bytea', hands)} as grant_from, k.locked_until as lease_end
    from ${keyWithOutcome(sql, '$1')}
  ), granted as (
    insert into ${sql.keys} as k (id, claim_id, fence, created_at, granted_at, expires_at, locked_until,
      attempts, state, recovery, fingerprint, scope, operation, description, tombstone_ms)
    select $1::uuid, $2::uuid, 1, t.now, t.now, t.now + ${milliseconds('$6')}, t.now + ${milliseconds('$5')},
      1, ${state.in_progress}, $4::smallint, $3::bytea, $7::text, $8::text, $9::text, $10::float8::bigint
    from (select ${sql.now} as now) t
    where not exists (select from seen s where s.grant_from is null${journal ? '' : ` or s.grant_from = 'expired'`})
    on conflict (id) do update set
      claim_id = excluded.claim_id,
      fence = k.fence + 1,
      created_at = case when ${expired} then excluded.created_at else k.created_at end,
      granted_at = excluded.granted_at,
      expires_at = excluded.expires_at,
      locked_until = excluded.locked_until,
      due_at = null,
      completed_at = null,
      attempts = case when ${expired} then 1 else k.attempts + 1 end,
      crashes = case when ${expired} then 0 when k.state = ${state.in_progress} then k.crashes + 1 else k.crashes end,
      state = excluded.state,
      recovery = excluded.recovery,
      fingerprint = excluded.fingerprint,
      outcome = null,
      description = case when ${fresh} then excluded.description else coalesce(excluded.description, k.description) end,
      last_error_code = case when ${expired} then null else k.last_error_code end,
      tombstone_ms = excluded.tombstone_ms,
      gone_at = null
    where k.fence = (select s.fence from seen s) and k.state = (select s.state from seen s)
      and k.locked_until is not distinct from (select s.lease_end from seen s)
      and ${grantedFrom(sql, 'excluded.fingerprint', hands)} is not null
    returning k.fence, k.attempts, k.crashes
  )${journal ? `, ${beginJournal(sql, { fresh, version: '$13', input: '$14', deadline: '$15' })}` : ''}
  select g.fence as won_fence, g.attempts as won_attempts, g.crashes as won_crashes, s.*
  from (select) one left join granted g on true left join seen s on true`
}
