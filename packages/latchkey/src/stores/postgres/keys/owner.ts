/** What the owner of a claim may write. Every statement matches fence AND claim id: who was replaced matches no row. */
import type { Outcome } from '../../../ports/outcome.ts'
import type { Claim, OwnerResult, Store } from '../../../ports/store.ts'
import { headersToText } from '../../shared/outcome-codec.ts'
import { packOutcome } from '../../shared/packed-outcome.ts'
import { milliseconds, recovery, state, stepState, storeOutcome } from '../sql/fragments.ts'
import { readable } from '../sql/values.ts'
import type { Dialect } from '../sql/names.ts'
import { queueUnknown, unqueue } from './unknown-queue.ts'
import { tryAgain } from '../steps/journal.ts'
import type { Run } from '../connection/statement.ts'
import { queueWaiting, unlist, waitingColumns } from './waiting-list.ts'

type OwnerCalls = Pick<Store, 'heartbeat' | 'complete' | 'fail' | 'release' | 'park'>
type LateRow = { readonly kind: 'settled' | 'repeated' | 'lost' }

export function ownerCalls(sql: Dialect, run: Run): OwnerCalls {
  const texts = ownerStatements(sql)
  /** The first statement is the normal life; only when it finds no row, the second one looks at why. */
  async function write(text: string, lateText: string, values: readonly unknown[]): Promise<OwnerResult> {
    const written = await run(text, values)
    if (written.length > 0) return 'written'
    const [late] = await run<LateRow>(lateText, values)
    return late === undefined || late.kind === 'lost' ? 'claim-lost' : 'written'
  }
  return {
    async heartbeat(claim, leaseMs) {
      const rows = await run(texts.heartbeat, [...owner(claim), leaseMs])
      return rows.length > 0 ? 'written' : 'claim-lost'
    },
    complete: (claim, outcome, retentionMs) =>
      write(texts.complete, texts.completeLate, [...owner(claim), retentionMs, ...outcomeValues(outcome, claim.fence)]),
    fail: (claim, { to, errorCode, dueInMs }) =>
      write(texts.fail, texts.failLate, [...owner(claim), state[to], dueInMs, readable(errorCode)]),
    async release(id, claimId) {
      const rows = await run(texts.release, [id, claimId])
      return rows.length > 0 ? 'released' : 'not-yours'
    },
    park: (claim, cause) => write(texts.park, texts.parkLate, [...owner(claim), readable(cause)]),
  }
}

export function owner({ id, fence, claimId }: Claim): readonly unknown[] {
  return [id, fence, claimId]
}

/** Larger ones would crowd the rows that every claim reads and writes: they have a table of their own. */
const packedBytesMax = 1_024

/** Undefined: too large to be kept with its key. */
export function packedOutcome(outcome: Outcome, fence: number): Buffer | undefined {
  if ((outcome.body?.length ?? 0) > packedBytesMax) return undefined
  const packed = packOutcome(outcome, fence)
  return packed.length > packedBytesMax ? undefined : packed
}

/** Without a fence, which a person's verdict does not know, the outcome is never packed. */
export function outcomeValues(outcome: Outcome, fence?: number): readonly unknown[] {
  const packed = fence === undefined ? undefined : packedOutcome(outcome, fence)
  return [outcome.status, outcome.version, headersToText(outcome.headers), outcome.body ?? null, packed ?? null]
}

interface OwnerStatements {
  readonly heartbeat: string
  readonly complete: string
  readonly completeLate: string
  readonly fail: string
  readonly failLate: string
  readonly release: string
  readonly park: string
  readonly parkLate: string
}

/** For a statement that begins with the values of `owner`. */
export const mine = 'k.id = $1::uuid and k.fence = $2::bigint and k.claim_id = $3::uuid'

function ownerStatements(sql: Dialect): OwnerStatements {
  return {
    // Atomic: one update of one row. The clock is not asked: an overdue owner that nobody replaced goes on.
    heartbeat: `update ${sql.keys} k set locked_until = ${sql.now} + ${milliseconds('$4')}
      where ${mine} and k.state = ${state.in_progress} returning 1`,
    complete: completeStatement(sql),
    completeLate: completeLateStatement(sql),
    fail: failStatement(sql),
    failLate: failLateStatement(sql),
    // Atomic: one statement. By claim id alone, because who lost the reply to a claim does not know its fence.
    release: `with released as (
        update ${sql.keys} k set state = ${state.failed_retryable}, locked_until = null, due_at = ${sql.now}
        where k.id = $1::uuid and k.claim_id = $2::uuid and k.state = ${state.in_progress}
        returning ${waitingColumns}
      ), ${queueWaiting(sql, 'released')}
      select 1 from released`,
    // Atomic: one statement; the entry in the list of parked rows is inserted from what the guarded update returned.
    park: `with parked as (
        update ${sql.keys} k set state = ${state.failed_retryable}, locked_until = null, due_at = ${sql.now},
          parked_at = ${sql.now}, last_error_code = $4::text
        where ${mine} and k.state = ${state.in_progress}
        returning ${waitingColumns}
      ), ${queueWaiting(sql, 'parked')}
      select 1 from parked`,
    // The reply to the same word was lost. The cause is compared only for its type: a parameter must have one.
    parkLate: `select 'repeated' as kind from ${sql.keys} k
      where ${mine} and k.state = ${state.failed_retryable} and k.parked_at is not null and $4::text is not null`,
  }
}

/** Atomic: one statement; the outcome is inserted from the row that the guarded update returned, or not at all. */
function completeStatement(sql: Dialect): string {
  return `with done as (
      update ${sql.keys} k set state = ${state.completed}, locked_until = null, completed_at = ${sql.now},
        outcome = $9::bytea, expires_at = greatest(k.expires_at, ${sql.now} + ${milliseconds('$4')})
      where ${mine} and k.state = ${state.in_progress}
      returning k.id, k.fence
    ), ${storeOutcome(sql, 'done', ['$5', '$6', '$7', '$8', '$9'])}
    select 1 from done`
}

/**
 * Nothing was in progress under this claim. `settled`: the row is unknown and still ours, so the answer is the evidence
 * that settles it. `repeated`: our own answer is already there, its reply was lost. `lost`: the answer is kept as evidence.
 * Atomic: one statement, and the update compares the state again under the row's lock. Its snapshot is younger than the
 * commit that took the row out of progress, so the entry in the queue is seen whenever the unknown state is.
 */
function completeLateStatement(sql: Dialect): string {
  return `with mine as materialized (
      select k.id, k.state, ${settledByOthers(sql)} as by_others
      from ${sql.keys} k where ${mine}
    ), settled as (
      update ${sql.keys} k set state = ${state.completed}, parked_at = null, completed_at = ${sql.now},
        outcome = $9::bytea, expires_at = greatest(k.expires_at, ${sql.now} + ${milliseconds('$4')})
      where ${mine} and k.state = ${state.unknown} and not ${hasOpenEffect(sql)}
      returning ${waitingColumns}, k.fence
    ), ${storeOutcome(sql, 'settled', ['$5', '$6', '$7', '$8', '$9'])},
    ${unqueue(sql, 'settled')}, ${unlist(sql, 'settled')},
    verdict as (
      select case when exists (select from settled) then 'settled'
        when exists (select from mine m where m.state = ${state.completed} and not m.by_others) then 'repeated'
        else 'lost' end as kind
    ), kept as (
      insert into ${sql.evidence} (key_id, fence, claim_id, source, verdict, applied, at, status, version, headers, body)
      select $1::uuid, $2::bigint, $3::uuid, 'late-owner', 'happened', v.kind = 'settled', ${sql.now},
        $5::smallint, $6::integer, $7::text, $8::bytea
      from verdict v where v.kind <> 'repeated'
    )
    select v.kind from verdict v`
}

/** Of phased work: an answer for the whole says nothing about an effect that is in doubt. Steps of an unknown row change only with its state. */
function hasOpenEffect(sql: Dialect): string {
  return `(k.recovery = ${recovery.resume}
        and exists (select from ${sql.steps} p where p.id = k.id and p.state = ${stepState.open}))`
}

/** Atomic: one statement; the entries of the queues and the intents follow from what the guarded update returned. */
function failStatement(sql: Dialect): string {
  return `with failed as (
      update ${sql.keys} k set state = $4::smallint, locked_until = null, last_error_code = $6::text,
        due_at = case when $4::smallint = ${state.failed_retryable} then ${sql.now} + ${milliseconds('$5')} end
      where ${mine} and k.state = ${state.in_progress}
      returning ${waitingColumns}
    ), proven as (
      select from failed f where f.state = ${state.failed_retryable}
    ), ${queueUnknown(sql, 'failed', '$6::text')}, ${tryAgain(sql, 'proven')}, ${queueWaiting(sql, 'failed')}
    select 1 from failed`
}

/** Somebody else's evidence settled the row `k` in its present grant; what its owner said late itself is not somebody else's. */
function settledByOthers(sql: Dialect): string {
  return `exists (select from ${sql.evidence} e where e.key_id = k.id and e.applied
        and coalesce(e.settled_claim, e.claim_id) = k.claim_id and (e.source <> 'late-owner' or e.claim_id <> k.claim_id))`
}

/** As the late complete; only the proof that nothing happened can settle an unknown row. Phased work goes on where it was. */
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
      returning ${waitingColumns}
    ),
    ${unqueue(sql, 'settled')}, ${tryAgain(sql, 'settled')}, ${unlist(sql, 'settled')}, ${queueWaiting(sql, 'settled')},
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
