/** The owner's answer: alone, in a batch, and late, when its claim is no longer in progress. */
import type { Outcome } from '../../../ports/outcome.ts'
import type { Claim, OwnerResult, Store } from '../../../ports/store.ts'
import { headersToText } from '../../shared/outcome-codec.ts'
import { packedOutcome } from '../../shared/packed-outcome.ts'
import { insertLines, lineReturned, writeLines } from '../audit/lines.ts'
import type { Batching } from '../batch/batched-calls.ts'
import { prepared, preparedForMany, preparedForOne } from '../connection/prepared.ts'
import type { RunStatement } from '../connection/statement.ts'
import { areUuids, byteas, type Column, float8s, inOrder, uuids } from '../sql/columns.ts'
import { milliseconds, recovery, state, stepState, storeOutcome } from '../sql/fragments.ts'
import { batchSettings } from '../sql/functions.ts'
import type { Dialect } from '../sql/names.ts'
import { idsWritten, idText, mine, ofArray, owner, writeOrLate } from './owner.ts'
import { unqueue } from './unknown-queue.ts'
import { unlist, waitingColumns } from './waiting-list.ts'

export function completeCall(sql: Dialect, run: RunStatement): Pick<Store, 'complete'> {
  const texts = { text: completeStatement(sql), lateText: completeLateStatement(sql) }
  return {
    async complete(claim, outcome, retentionMs) {
      return writeOrLate(run, texts, [...owner(claim), retentionMs, ...outcomeValues(outcome, claim.fence)])
    },
  }
}

interface Completion {
  readonly claim: Claim
  readonly outcome: Outcome
  readonly retentionMs: number
  readonly packed: Buffer
}

export function batchedComplete({ sql, single, together }: Batching): Pick<Store, 'complete'> {
  const sendAlone = ({ claim, outcome, retentionMs }: Completion) => single.complete(claim, outcome, retentionMs)
  const many = preparedForMany(prepared('complete', completeManyStatement(sql)), completionColumns)
  const batched = together<Completion, OwnerResult>({
    name: 'complete',
    keyOf: ({ claim: { id } }) => id,
    sendAlone,
    many: completions => many(inOrder(completions, ({ claim }) => claim.id)),
    resultsOf(completions, answer) {
      const isWritten = idsWritten(answer)
      // Not in progress under this claim any more: the statement for one row finds out why.
      return completions.map(each => (isWritten(each.claim.id) ? 'written' : sendAlone(each)))
    },
    one: preparedForOne(prepared('complete_one', completeFirstStatement(sql)), completionColumns),
    resultOf: (completion, { count }) => (count === 1 ? 'written' : sendAlone(completion)),
  })
  return {
    complete(claim, outcome, retentionMs) {
      // A later grant has to remove what an earlier one left, and large outcomes have a table of their own.
      const packed = claim.fence === 1 && areUuids(claim) ? packedOutcome(outcome, claim.fence) : undefined
      return packed === undefined
        ? single.complete(claim, outcome, retentionMs)
        : batched({ claim, outcome, retentionMs, packed })
    },
  }
}

const completionColumns: readonly Column<Completion>[] = [
  uuids(each => each.claim.id),
  uuids(each => each.claim.claimId),
  float8s(each => each.retentionMs),
  byteas(each => each.packed),
]

/** Without a fence, which an operator's verdict does not know, the outcome is never packed. */
export function outcomeValues(outcome: Outcome, fence?: number): readonly unknown[] {
  const packed = fence === undefined ? undefined : packedOutcome(outcome, fence)
  return [outcome.status, outcome.version, headersToText(outcome.headers), outcome.body ?? null, packed ?? null]
}

/** What an owner's answer writes to its row `k`, in time or late, alone or in a batch. The batch's function has it to the letter. */
function completion({ now }: Dialect, { outcome, retentionMs }: Record<'outcome' | 'retentionMs', string>): string {
  return `state = ${state.completed}, locked_until = null, completed_at = ${now},
      outcome = ${outcome}, expires_at = greatest(k.expires_at, ${now} + ${milliseconds(retentionMs)})`
}

/** Atomic: one statement; the outcome is inserted from the row that the guarded update returned, or not at all. */
function completeStatement(sql: Dialect): string {
  return `with done as (
      update ${sql.keys} k set ${completion(sql, { outcome: '$9::bytea', retentionMs: '$4' })}
      where ${mine} and k.state = ${state.in_progress}
      returning k.id, k.fence${lineReturned(sql)}
    ), ${storeOutcome(sql, 'done', ['$5', '$6', '$7', '$8', '$9'])}${writeLines(sql, 'done', '$5')}
    select 1 from done`
}

/**
 * Nothing was in progress under this claim. `settled`: the row is unknown and still ours, so the answer is the evidence
 * that settles it. `repeated`: our own answer is already there, its reply was lost. `lost`: the answer is stored as evidence.
 * Atomic: one statement, and the update compares the state again under the row's lock. Its snapshot is younger than the
 * commit that took the row out of progress, so the entry in the queue is seen whenever the unknown state is.
 */
function completeLateStatement(sql: Dialect): string {
  return `with mine as materialized (
      select k.id, k.state, ${settledByOthers(sql)} as by_others
      from ${sql.keys} k where ${mine}
    ), settled as (
      update ${sql.keys} k set ${completion(sql, { outcome: '$9::bytea', retentionMs: '$4' })}, parked_at = null
      where ${mine} and k.state = ${state.unknown} and not ${hasOpenEffect(sql)}
      returning ${waitingColumns}, k.fence${lineReturned(sql)}
    ), ${storeOutcome(sql, 'settled', ['$5', '$6', '$7', '$8', '$9'])},
    ${unqueue(sql, 'settled')}, ${unlist(sql, 'settled')}${writeLines(sql, 'settled', '$5')},
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

/** Of phased work: an answer for the whole proves nothing about an effect that is in doubt. Steps of an unknown row change only with its state. */
function hasOpenEffect(sql: Dialect): string {
  return `(k.recovery = ${recovery.resume}
        and exists (select from ${sql.steps} p where p.id = k.id and p.state = ${stepState.open}))`
}

/** The row `k` was settled in its present grant by evidence other than its owner's own late answer. */
function settledByOthers(sql: Dialect): string {
  return `exists (select from ${sql.evidence} e where e.key_id = k.id and e.applied
        and coalesce(e.settled_claim, e.claim_id) = k.claim_id and (e.source <> 'late-owner' or e.claim_id <> k.claim_id))`
}

/** For a row at its first grant and an outcome that is stored with its key. The last condition keeps the plan at the primary key. */
function completeFirstStatement(sql: Dialect): string {
  const update = `update ${sql.keys} k set ${completion(sql, { outcome: '$4::bytea', retentionMs: '$3' })}
    where k.id = $1::uuid and k.fence = 1 and k.claim_id = $2::uuid and k.state = ${state.in_progress}
      and ${sql.functions.oneRow}()`
  if (!sql.recordsLines) return update
  return `with done as (${update} returning k.id${lineReturned(sql)})${writeLines(sql, 'done')} select 1 from done`
}

function completeManyStatement({ functions }: Dialect): string {
  return `select ${idText(`${functions.completeMany}($1::uuid[], $2::uuid[], $3::float8[], $4::bytea[])`)} as written`
}

/**
 * Returns null when all were written, and otherwise the ids of those that were. Only for rows at fence 1 and outcomes that are
 * stored with their key. The arrays are in the order of the identities, and the only plan that the settings leave reads them in that order
 * and writes each row before the next: two batches, or a batch and the reaper, never wait for each other in a circle. A row that
 * changed while its lock was waited for is compared again. The rows are counted, and named only where one is missing: a list of them would
 * cost every batch as much as a tenth of its rows. Those that this transaction wrote are known by its number.
 */
export function completeManyFunction(sql: Dialect): string {
  const done = { ...sql, now: 'done_at' }
  const update = `update ${sql.keys} k set ${completion(done, { outcome: 'a.outcome', retentionMs: 'a.retention_ms' })}
  from unnest(ids, claim_ids, retention_ms, outcomes) a (id, claim_id, retention_ms, outcome)
  where ${ofArray('a.id')} and k.fence = 1 and k.claim_id = a.claim_id and k.state = ${state.in_progress}`
  // A line is inserted for each row that was written, so either statement counts the rows.
  const recorded = `with done as (${update} returning k.id${lineReturned(sql)})
  ${insertLines(done, 'done')}`
  return `create function ${sql.functions.completeMany}(ids uuid[], claim_ids uuid[], retention_ms float8[], outcomes bytea[])
returns uuid[] ${batchSettings} as $latchkey$
declare
  done_at timestamptz := ${sql.now};
  written bigint;
begin
  ${sql.recordsLines ? recorded : update};
  get diagnostics written = row_count;
  if written = pg_catalog.cardinality(ids) then return null; end if;
  return array(select k.id from ${sql.keys} k
    where k.id = any (ids) and k.claim_id = any (claim_ids) and k.state = ${state.completed}
      and k.xmin = pg_catalog.pg_current_xact_id_if_assigned()::xid);
end $latchkey$;

`
}
