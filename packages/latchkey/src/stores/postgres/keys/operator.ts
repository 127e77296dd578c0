/** What an operator does: list, inspect, settle, forget, unpark. Each act commits with its audit entry, in one statement. */
import { LatchkeyError } from '../../../ports/errors.ts'
import type { AuditEntry, Evidence, Listing, Store } from '../../../ports/store.ts'
import { rowStateOf } from '../../shared/codes.ts'
import { pageOf, pageSize } from '../../shared/listing.ts'
import type { RawNumber } from '../../shared/record-row.ts'
import type { RunStatement } from '../connection/statement.ts'
import { settleCall } from '../reconcile/settle.ts'
import { epochMs, hasForeignRecovery, recordColumns, state } from '../sql/fragments.ts'
import type { Dialect } from '../sql/names.ts'
import { readable } from '../sql/columns.ts'
import { dropJournals } from '../steps/journal.ts'
import { keyRecord, readStatement, type KeyRow } from './read.ts'
import { unqueue } from './unknown-queue.ts'
import { queueWaiting, unlist, waitingColumns } from './waiting-list.ts'

/** An operator's act meets another act on the same row once, perhaps twice; not ten times. */
const actsMax = 10

type ActRow = { readonly state: RawNumber; readonly acted: boolean }
type NotesRow = { readonly evidence: string; readonly audit: string }
/** JSON has no undefined. */
type EvidenceNote = Omit<Evidence, 'effect'> & { readonly effect: string | null }
type UnparkRow = { readonly acted: boolean }
type OperatorCalls = Pick<Store, 'list' | 'inspect' | 'settle' | 'forget' | 'unpark'>

export function operatorCalls(sql: Dialect, run: RunStatement): OperatorCalls {
  const texts = {
    forget: forgetStatement(sql),
    unpark: unparkStatement(sql),
    notes: notesStatement(sql),
  }
  return {
    async list(listing) {
      const size = pageSize(listing.limit)
      const rows = await run<KeyRow>(listStatement(sql, listing), listValues(listing, size))
      return pageOf(rows.map(keyRecord), size)
    },
    async inspect(id) {
      const [row] = await run<KeyRow>(readStatement(sql), [id])
      const [notes] = await run<NotesRow>(texts.notes, [id])
      // Written as JSON by the statement below, with these names.
      const evidence = JSON.parse(notes?.evidence ?? '[]') as readonly EvidenceNote[]
      const audit = JSON.parse(notes?.audit ?? '[]') as readonly AuditEntry[]
      return { record: row && keyRecord(row), evidence: evidence.map(evidenceOf), audit }
    },
    ...settleCall(sql, run),
    async forget(id, by) {
      for (let tries = 0; tries < actsMax; tries += 1) {
        const [row] = await run<ActRow>(texts.forget, [id, readable(by.by), readable(by.reason)])
        if (row === undefined) return { kind: 'not-found' }
        if (row.acted) return { kind: 'forgotten' }
        const found = rowStateOf(Number(row.state))
        // It could be forgotten when it was read, and yet was not: another call was faster. Read again.
        if (found !== 'completed' && found !== 'unreadable') return { kind: 'wrong-state', state: found }
      }
      throw new LatchkeyError('store-unavailable', `the row of identity ${id} keeps changing: try again`)
    },
    async unpark(id, { by, reason }) {
      const [row] = await run<UnparkRow>(texts.unpark, [id, readable(by), readable(reason)])
      if (row === undefined) return { kind: 'not-found' }
      // Parked when it was read, and yet not changed: another call has unparked it.
      return { kind: row.acted ? 'unparked' : 'not-parked' }
    },
  }
}

function evidenceOf(note: EvidenceNote): Evidence {
  return { ...note, effect: note.effect ?? undefined }
}

/** By the primary key's order. Unknown and parked rows come from their queues, so that the usual questions scan nothing. */
export function listStatement(sql: Dialect, listing: Listing): string {
  const queue = listing.parked === true ? sql.waiting : listing.state === 'unknown' ? sql.due : undefined
  const rows = queue === undefined ? `${sql.keys} k` : `${queue} q join ${sql.keys} k on k.id = q.id`
  return `select ${recordColumns(sql)} from ${rows}
    where ${listing.parked === true ? 'k.parked_at is not null' : 'true'}
      and ($1::smallint is null or k.state = $1::smallint) and ($2::text is null or k.operation = $2::text)
      and ($3::uuid is null or k.id > $3::uuid) ${listing.scope === undefined ? '' : ofScope}
    order by k.id limit $4::integer`
}

/** The bucket is what `keys_scope` knows; the scope itself is compared in the rows. */
const bucket = (scope: string) => `(pg_catalog.hashtext(${scope}) & 255)`
const ofScope = `and ${bucket('k.scope')} = ${bucket('$5::text collate "C"')} and k.scope = $5::text`

function listValues(listing: Listing, size: number): readonly unknown[] {
  const code = listing.state === undefined ? null : state[listing.state]
  const values = [code, listing.operation ?? null, listing.after ?? null, size + 1]
  return listing.scope === undefined ? values : [...values, listing.scope]
}

function notesStatement(sql: Dialect): string {
  const at = (column: string) => `pg_catalog.floor(${epochMs(column)})::bigint`
  return `select
    (select coalesce(pg_catalog.json_agg(pg_catalog.json_build_object('source', e.source, 'verdict', e.verdict, 'applied', e.applied,
      'effect', e.effect_name, 'atMs', ${at('e.at')}) order by e.evidence_id), '[]')::text from ${sql.evidence} e where e.key_id = $1::uuid) as evidence,
    (select coalesce(pg_catalog.json_agg(pg_catalog.json_build_object('act', a.act, 'by', a.actor, 'reason', a.reason, 'detail', a.detail,
      'atMs', ${at('a.at')}) order by a.audit_id), '[]')::text from ${sql.audit} a where a.key_id = $1::uuid) as audit`
}

/** This version does not know what the row `k` is for. With a lease that still runs it is left to the process that does. */
function isForeign(sql: Dialect): string {
  const isUnderWay = `k.state = ${state.in_progress} and k.locked_until > ${sql.now}`
  return `(k.state not in (${Object.values(state).join(', ')}) or ${hasForeignRecovery('k')} and not (${isUnderWay}))`
}

/** Atomic: one statement; what is deleted is what was seen, and the audit entry is inserted from what was deleted. */
function forgetStatement(sql: Dialect): string {
  return `with seen as materialized (
      select k.id, k.fence, k.state from ${sql.keys} k where k.id = $1::uuid
    ), gone as (
      delete from ${sql.keys} k using seen s
      where k.id = s.id and k.fence = s.fence and (k.state = ${state.completed} or ${isForeign(sql)})
      returning k.id, k.fence, k.operation, k.scope
    ), outcomes_gone as (
      delete from ${sql.outcomes} o where o.id = $1::uuid and exists (select from gone)
    ), ${dropJournals(sql, 'gone')}, ${unqueue(sql, 'gone')}, audited as (
      insert into ${sql.audit} (key_id, act, actor, reason, detail, at, scope)
      select g.id, 'forget', $2::text, $3::text, pg_catalog.concat_ws(' ', g.operation, 'fence', g.fence), ${sql.now}, g.scope from gone g
    )
    select s.state, exists (select from gone) as acted from seen s`
}

/**
 * Atomic: one statement; the audit entry is inserted from what the update returned, which compares the mark under the row's
 * lock, so that of two operators one acts. An unknown row is looked up again at once, under a new number: that of the look-up that was
 * given up is used. A row past its expiry gets its whole time again: otherwise
 * it would be reaped, and its work lost by the very act that should resume it.
 */
function unparkStatement(sql: Dialect): string {
  return `with seen as materialized (
      select k.id, k.fence from ${sql.keys} k where k.id = $1::uuid
    ), unparked as (
      update ${sql.keys} k set parked_at = null, crashes = 0,
        due_at = case when k.state in (${state.pending}, ${state.failed_retryable}) then ${sql.now} end,
        expires_at = greatest(k.expires_at, ${sql.now} + (k.expires_at - k.created_at))
      from seen s where k.id = s.id and k.fence = s.fence and k.parked_at is not null
      returning ${waitingColumns}, k.fence, k.last_error_code, k.scope
    ), ${queueWaiting(sql, 'unparked')}, ${unlist(sql, 'unparked')}, asked_again as (
      update ${sql.due} d set look_up_at = ${sql.now}, tries = 0, look = d.look + 1
      where d.id = $1::uuid and exists (select from unparked)
    ), audited as (
      insert into ${sql.audit} (key_id, act, actor, reason, detail, at, scope)
      select u.id, 'unpark', $2::text, $3::text, pg_catalog.concat_ws(' ', u.last_error_code, 'fence', u.fence), ${sql.now}, u.scope from unparked u
    )
    select exists (select from unparked) as acted from seen s`
}
