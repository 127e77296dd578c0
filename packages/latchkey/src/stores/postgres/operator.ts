/** What a person does: list, inspect, settle, forget, unpark. Each act commits with its audit entry, in one statement. */
import { LatchkeyError } from '../../ports/errors.ts'
import type { Act, AuditEntry, Evidence, Listing, SettleResult, Store, Verdict } from '../../ports/store.ts'
import { stateOf } from '../../sql/codes.ts'
import type { RawNumber } from '../../sql/record-row.ts'
import { keyRecord, readStatement, type KeyRow } from './claim.ts'
import { milliseconds, readable, recordColumns, recovery, state, storeOutcome, type Dialect } from './dialect.ts'
import { unqueue } from './due.ts'
import { dropJournals, tryAgain } from './journal.ts'
import { outcomeValues } from './owner.ts'
import type { Run } from './run.ts'
import { queueWaiting, waitingColumns } from './waiting.ts'

const listLimitMax = 1_000

/** A person's act meets another act on the same row once, perhaps twice; not ten times. */
const actsMax = 10

type ActRow = { readonly state: RawNumber; readonly acted: boolean }
type NotesRow = { readonly evidence: string; readonly audit: string }
type UnparkRow = { readonly acted: boolean }
type OperatorCalls = Pick<Store, 'list' | 'inspect' | 'settle' | 'forget' | 'unpark'>

export function operatorCalls(sql: Dialect, run: Run): OperatorCalls {
  const texts = {
    settle: settleStatement(sql),
    forget: forgetStatement(sql),
    unpark: unparkStatement(sql),
    notes: notesStatement(sql),
  }
  const act = async (id: string, text: string, values: readonly unknown[], from: number) => {
    for (let tries = 0; tries < actsMax; tries += 1) {
      const [row] = await run<ActRow>(text, values)
      if (row === undefined) return { kind: 'not-found' } as const
      if (row.acted) return { kind: 'acted' } as const
      // In the right state when looked at, and yet not changed: somebody was faster. Look again.
      if (Number(row.state) !== from) return { kind: 'wrong-state', state: stateOf(Number(row.state)) } as const
    }
    throw new LatchkeyError('store-unavailable', `the row of identity ${id} keeps changing: try again`)
  }
  return {
    async list(listing) {
      const limit = Math.min(listing.limit, listLimitMax)
      const rows = await run<KeyRow>(listStatement(sql, listing), listValues(listing, limit))
      const records = rows.slice(0, limit).map(keyRecord)
      return { records, next: rows.length > limit ? records.at(-1)?.id : undefined }
    },
    async inspect(id) {
      const [row] = await run<KeyRow>(readStatement(sql), [id])
      const [notes] = await run<NotesRow>(texts.notes, [id])
      // Written as JSON by the statement below, with these names.
      const evidence = JSON.parse(notes?.evidence ?? '[]') as readonly Evidence[]
      const audit = JSON.parse(notes?.audit ?? '[]') as readonly AuditEntry[]
      return { record: row && keyRecord(row), evidence, audit }
    },
    async settle(id, verdict, by, retentionMs): Promise<SettleResult> {
      const result = await act(id, texts.settle, settleValues(id, verdict, by, retentionMs), state.unknown)
      return result.kind === 'acted' ? { kind: 'settled' } : result
    },
    async forget(id, by) {
      const result = await act(id, texts.forget, [id, readable(by.by), readable(by.reason)], state.completed)
      return result.kind === 'acted' ? { kind: 'forgotten' } : result
    },
    async unpark(id, { by, reason }) {
      const [row] = await run<UnparkRow>(texts.unpark, [id, readable(by), readable(reason)])
      if (row === undefined) return { kind: 'not-found' }
      // Parked when looked at, and yet not changed: somebody else has unparked it.
      return { kind: row.acted ? 'unparked' : 'not-parked' }
    },
  }
}

/** By the primary key's order. Unknown and parked rows come from their queues, so that the usual questions scan nothing. */
function listStatement(sql: Dialect, listing: Listing): string {
  const queue = listing.parked === true ? sql.waiting : listing.state === 'unknown' ? sql.due : undefined
  const rows = queue === undefined ? `${sql.keys} k` : `${queue} q join ${sql.keys} k on k.id = q.id`
  return `select ${recordColumns(sql)} from ${rows}
    where ${listing.parked === true ? 'k.parked_at is not null' : 'true'}
      and ($1::smallint is null or k.state = $1::smallint) and ($2::text is null or k.operation = $2::text)
      and ($3::uuid is null or k.id > $3::uuid)
    order by k.id limit $4::integer`
}

/** One more than asked for tells whether there is a next page. */
function listValues(listing: Listing, limit: number): readonly unknown[] {
  const code = listing.state === undefined ? null : state[listing.state]
  return [code, listing.operation ?? null, listing.after ?? null, limit + 1]
}

function notesStatement(sql: Dialect): string {
  const at = (column: string) => `floor(extract(epoch from ${column}) * 1000)::bigint`
  return `select
    (select coalesce(json_agg(json_build_object('source', e.source, 'verdict', e.verdict, 'applied', e.applied,
      'atMs', ${at('e.at')}) order by e.evidence_id), '[]')::text from ${sql.evidence} e where e.key_id = $1::uuid) as evidence,
    (select coalesce(json_agg(json_build_object('act', a.act, 'by', a.actor, 'reason', a.reason, 'detail', a.detail,
      'atMs', ${at('a.at')}) order by a.audit_id), '[]')::text from ${sql.audit} a where a.key_id = $1::uuid) as audit`
}

function settleValues(id: string, verdict: Verdict, { by, reason }: Act, retentionMs: number): readonly unknown[] {
  const outcome = verdict.kind === 'happened' ? outcomeValues(verdict.outcome) : [null, null, null, null]
  const to = verdict.kind === 'happened' ? state.completed : state.failed_retryable
  return [id, to, verdict.kind, readable(by), readable(reason), retentionMs, ...outcome]
}

/**
 * Atomic: one statement. The update matches the fence that was seen: a row that ran again and became unknown again while
 * the statement waited for its lock is another unknown, and the verdict was not about it.
 */
function settleStatement(sql: Dialect): string {
  return `with seen as materialized (
      select k.id, k.fence, k.state from ${sql.keys} k where k.id = $1::uuid
    ), settled as (
      update ${sql.keys} k set state = $2::smallint, parked_at = null,
        due_at = case when $2::smallint = ${state.failed_retryable} then ${sql.now} end,
        completed_at = case when $2::smallint = ${state.completed} then ${sql.now} end,
        expires_at = greatest(k.expires_at, ${sql.now} + ${milliseconds('$6')})
      from seen s where k.id = s.id and k.fence = s.fence and k.state = ${state.unknown}
      returning ${waitingColumns}, k.fence, k.claim_id
    ), answered as (
      select s.id, s.fence from settled s where s.state = ${state.completed}
    ), disproven as (
      select from settled s where s.state = ${state.failed_retryable}
    ), ${storeOutcome(sql, 'answered', ['$7', '$8', '$9', '$10'])},
    ${unqueue(sql, 'settled')}, ${tryAgain(sql, 'disproven', 'p.epoch + 1')}, ${queueWaiting(sql, 'settled')},
    proven as (
      insert into ${sql.evidence} (key_id, fence, claim_id, source, verdict, applied, at, status, version, headers, body)
      select s.id, s.fence, s.claim_id, 'operator', $3::text, true, ${sql.now},
        $7::smallint, $8::integer, $9::text, $10::bytea from settled s
    ), audited as (
      insert into ${sql.audit} (key_id, act, actor, reason, detail, at)
      select s.id, 'settle', $4::text, $5::text, concat_ws(' ', $3::text, $7::text, 'fence', s.fence), ${sql.now} from settled s
    )
    select s.state, exists (select from settled) as acted from seen s`
}

/** Atomic: one statement; what is deleted is what was seen, and the audit entry is inserted from what was deleted. */
function forgetStatement(sql: Dialect): string {
  return `with seen as materialized (
      select k.id, k.fence, k.state from ${sql.keys} k where k.id = $1::uuid
    ), gone as (
      delete from ${sql.keys} k using seen s
      where k.id = s.id and k.fence = s.fence and k.state = ${state.completed}
      returning k.id, k.fence, k.operation
    ), outcomes_gone as (
      delete from ${sql.outcomes} o where o.id = $1::uuid and exists (select from gone)
    ), ${dropJournals(sql, 'gone')}, audited as (
      insert into ${sql.audit} (key_id, act, actor, reason, detail, at)
      select g.id, 'forget', $2::text, $3::text, concat_ws(' ', g.operation, 'fence', g.fence), ${sql.now} from gone g
    )
    select s.state, exists (select from gone) as acted from seen s`
}

/**
 * Atomic: one statement; the audit entry is inserted from what the update returned, which compares the mark under the row's
 * lock, so that of two people one acts. A row past its expiry gets the time again that it was given: unparked only to be
 * reaped, its work would be lost by the very act that is to go on with it.
 */
function unparkStatement(sql: Dialect): string {
  return `with seen as materialized (
      select k.id, k.fence from ${sql.keys} k where k.id = $1::uuid
    ), unparked as (
      update ${sql.keys} k set parked_at = null, crashes = 0,
        due_at = case when k.state in (${state.pending}, ${state.failed_retryable}) then ${sql.now} end,
        expires_at = greatest(k.expires_at, ${sql.now} + (k.expires_at - k.created_at))
      from seen s where k.id = s.id and k.fence = s.fence and k.parked_at is not null
      returning ${waitingColumns}, k.fence, k.last_error_code
    ), ${queueWaiting(sql, 'unparked')}, unlisted as (
      delete from ${sql.waiting} w
      where w.id = $1::uuid and exists (select from unparked u where u.recovery <> ${recovery.resume} or u.due_at is null)
    ), audited as (
      insert into ${sql.audit} (key_id, act, actor, reason, detail, at)
      select u.id, 'unpark', $2::text, $3::text, concat_ws(' ', u.last_error_code, 'fence', u.fence), ${sql.now} from unparked u
    )
    select exists (select from unparked) as acted from seen s`
}
