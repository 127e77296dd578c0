/** The owner gives up: nothing happened, or it is unknown what happened, or the row is parked. */
import type { Store } from '../../../ports/store.ts'
import { lineReturned, writeLines } from '../audit/lines.ts'
import type { RunStatement } from '../connection/statement.ts'
import { milliseconds, recovery, state } from '../sql/fragments.ts'
import type { Dialect } from '../sql/names.ts'
import { readable } from '../sql/columns.ts'
import { tryAgain } from '../steps/journal.ts'
import { mine, owner, writeOrLate } from './owner.ts'
import { queueUnknown, unqueue } from './unknown-queue.ts'
import { queueWaiting, unlist, waitingColumns } from './waiting-list.ts'

export function failCalls(sql: Dialect, run: RunStatement): Pick<Store, 'fail' | 'park'> {
  const fail = { text: failStatement(sql), lateText: failLateStatement(sql) }
  const park = { text: parkStatement(sql), lateText: parkLateStatement(sql) }
  return {
    fail: (claim, { to, errorCode, dueInMs }) =>
      writeOrLate(run, fail, [...owner(claim), state[to], dueInMs, readable(errorCode)]),
    park: (claim, cause) => writeOrLate(run, park, [...owner(claim), readable(cause)]),
  }
}

/** Atomic: one statement; the entries of the queues and the intents follow from what the guarded update returned. */
function failStatement(sql: Dialect): string {
  return `with failed as (
      update ${sql.keys} k set state = $4::smallint, locked_until = null, last_error_code = $6::text,
        due_at = case when $4::smallint = ${state.failed_retryable} then ${sql.now} + ${milliseconds('$5')} end
      where ${mine} and k.state = ${state.in_progress}
      returning ${waitingColumns}${lineReturned(sql)}
    ), proven as (
      select from failed f where f.state = ${state.failed_retryable}
    ), ${queueUnknown(sql, 'failed', '$6::text')}, ${tryAgain(sql, 'proven')}, ${queueWaiting(sql, 'failed')}${writeLines(sql, 'failed')}
    select 1 from failed`
}

/** As the late complete; only the proof that nothing happened can settle an unknown row. Phased work is resumed where it was. */
function failLateStatement(sql: Dialect): string {
  return `with mine as materialized (
      select case when k.state = ${state.pending} and exists (select from ${sql.evidence} e where e.key_id = k.id
          and e.claim_id = k.claim_id and e.source = 'late-owner' and e.verdict = 'never-happened' and e.applied)
        then ${state.failed_retryable} else k.state end as state
      from ${sql.keys} k where ${mine}
    ), settled as (
      update ${sql.keys} k set parked_at = null, last_error_code = $6::text, due_at = ${sql.now} + ${milliseconds('$5')},
        state = case when k.recovery = ${recovery.resume} then ${state.pending} else ${state.failed_retryable} end
      where ${mine} and k.state = ${state.unknown} and $4::smallint = ${state.failed_retryable}
      returning ${waitingColumns}${lineReturned(sql)}
    ),
    ${unqueue(sql, 'settled')}, ${tryAgain(sql, 'settled')}, ${unlist(sql, 'settled')}, ${queueWaiting(sql, 'settled')}${writeLines(sql, 'settled')},
    verdict as (
      select case when exists (select from settled) then 'settled'
        when exists (select from mine m where m.state = $4::smallint) then 'repeated'
        else 'lost' end as kind
    ), kept as (
      insert into ${sql.evidence} (key_id, fence, claim_id, source, verdict, applied, at)
      select $1::uuid, $2::bigint, $3::uuid, 'late-owner',
        case when $4::smallint = ${state.failed_retryable} then 'never-happened' else 'unknown' end,
        v.kind = 'settled', ${sql.now}
      from verdict v where v.kind <> 'repeated'
    )
    select v.kind from verdict v`
}

/** Atomic: one statement; the entry in the list of parked rows is inserted from what the guarded update returned. */
function parkStatement(sql: Dialect): string {
  return `with parked as (
      update ${sql.keys} k set state = ${state.failed_retryable}, locked_until = null, due_at = ${sql.now},
        parked_at = ${sql.now}, last_error_code = $4::text
      where ${mine} and k.state = ${state.in_progress}
      returning ${waitingColumns}${lineReturned(sql)}
    ), ${queueWaiting(sql, 'parked')}${writeLines(sql, 'parked')}
    select 1 from parked`
}

/** The reply to the same call was lost. The cause is compared only because a parameter must have a type. */
function parkLateStatement(sql: Dialect): string {
  return `select 'repeated' as kind from ${sql.keys} k
    where ${mine} and k.state = ${state.failed_retryable} and k.parked_at is not null and $4::text is not null`
}
