/** Questions to the provider about unknown rows, each asked by one process at a time. */
import type { Lookup, LookupClaim, Reconciliation, UnknownSummary } from '../../../ports/reconciliation.ts'
import type { RawNumber } from '../../shared/record-row.ts'
import type { RunStatement } from '../connection/statement.ts'
import { queueWaiting, waitingColumns } from '../keys/waiting-list.ts'
import { epochMs, milliseconds, state } from '../sql/fragments.ts'
import type { Dialect } from '../sql/names.ts'
import { readable } from '../sql/columns.ts'
import { effectOf, type EffectRow } from './keep.ts'
import { openEffect } from './settle.ts'

type LookupCalls = Pick<Reconciliation, 'lookups' | 'postpone' | 'giveUp' | 'nextLookUpInMs' | 'unknowns'>

interface LookupRow extends EffectRow {
  readonly id: string
  readonly scope: string
  readonly operation: string
  readonly fence: RawNumber
  readonly attempts: RawNumber
  readonly created_at_ms: RawNumber
  readonly look: RawNumber
  readonly tries: RawNumber
  readonly unknown_for_ms: RawNumber
}

interface UnknownRow {
  readonly operation: string
  readonly count: RawNumber
  readonly parked: RawNumber
  readonly oldest_ms: RawNumber
}

export function lookupCalls(sql: Dialect, run: RunStatement): LookupCalls {
  const texts = {
    lookups: lookupsStatement(sql),
    postpone: postponeStatement(sql),
    giveUp: giveUpStatement(sql),
    // Infinity: parked. Null: not looked up yet.
    next: `select ${epochMs(`(d.look_up_at - ${sql.now})`)} as in_ms from ${sql.due} d where d.id = $1::uuid and d.look_up_at < 'infinity'`,
    unknowns: unknownsStatement(sql),
  }
  const write = async (text: string, { id, fence, look }: LookupClaim, value: unknown) =>
    (await run(text, [id, fence, look, value])).length > 0 ? 'written' : 'claim-lost'
  return {
    async lookups({ operation, firstInMs, leaseMs, limit }) {
      const rows = await run<LookupRow>(texts.lookups, [readable(operation), firstInMs, leaseMs, limit])
      return rows.map(lookupOf)
    },
    postpone: (lookup, inMs) => write(texts.postpone, lookup, inMs),
    giveUp: (lookup, cause) => write(texts.giveUp, lookup, readable(cause)),
    async nextLookUpInMs(id) {
      const [row] = await run<{ readonly in_ms: RawNumber }>(texts.next, [id])
      return row && Math.ceil(Number(row.in_ms))
    },
    async unknowns() {
      return (await run<UnknownRow>(texts.unknowns, [])).map(summaryOf)
    },
  }
}

function lookupOf(row: LookupRow): Lookup {
  const { id, scope, operation } = row
  return {
    id,
    identity: { id, scope, operation },
    fence: Number(row.fence),
    look: Number(row.look),
    tries: Number(row.tries),
    unknownForMs: Math.floor(Number(row.unknown_for_ms)),
    createdAtMs: Math.floor(Number(row.created_at_ms)),
    attempts: Number(row.attempts),
    effect: effectOf(row),
  }
}

function summaryOf({ operation, count, parked, oldest_ms }: UnknownRow): UnknownSummary {
  return { operation, count: Number(count), parked: Number(parked), oldestMs: Math.floor(Number(oldest_ms)) }
}

/**
 * Atomic: one statement. Row and entry are locked, compared again and granted; what another process is just granting or settling is
 * skipped, so that no process waits. The effect is read in the statement's snapshot, which is enough: a row that was settled since has
 * lost its entry, and an entry that is still there is of the same unknown. Until its lease is over the row is not due; then it stands
 * behind the others, so that a look-up that kills its process holds up no other.
 */
function lookupsStatement(sql: Dialect): string {
  const dueAt = `coalesce(d.look_up_at, d.since + ${milliseconds('$2')})`
  return `with chosen as materialized (
      select k.id, k.scope, k.operation, k.recovery, k.fence, k.attempts, k.created_at, ${dueAt} as due_at
      from ${sql.due} d join ${sql.keys} k on k.id = d.id
      where k.operation = $1::text and k.state = ${state.unknown} and k.parked_at is null
        and ${dueAt} <= (select ${sql.now})
      order by 8 limit $4::integer for update of k, d skip locked
    ), granted as (
      update ${sql.due} d set look = d.look + 1, tries = d.tries + 1, look_up_at = ${sql.now} + ${milliseconds('$3')}
      from chosen c where d.id = c.id
      returning d.id, d.look, d.tries, d.since
    )
    select c.id, c.scope, c.operation, c.fence, c.attempts, ${epochMs('c.created_at')} as created_at_ms, g.look, g.tries,
      ${epochMs(`(${sql.now} - g.since)`)} as unknown_for_ms, o.position, o.name, o.epoch
    from granted g join chosen c on c.id = g.id ${openEffect(sql, 'c')} order by c.due_at`
}

/**
 * The look-up is still its owner's: the row was not settled, given up or looked up again since. Both rows are locked, because a grant writes
 * only to the entry, and a statement that waited for the key alone would compare the entry as it was before. The clock is not compared.
 */
function heldLookup(sql: Dialect): string {
  return `held as materialized (
      select k.id from ${sql.keys} k join ${sql.due} d on d.id = k.id
      where k.id = $1::uuid and k.fence = $2::bigint and k.state = ${state.unknown} and k.parked_at is null and d.look = $3::bigint
      for update of k, d
    )`
}

/** Atomic: one statement; the entry changes only while its lock is held. */
function postponeStatement(sql: Dialect): string {
  return `with ${heldLookup(sql)}
    update ${sql.due} d set look_up_at = ${sql.now} + ${milliseconds('$4')}
    from held h where d.id = h.id returning 1`
}

/**
 * Atomic: one statement; the entries of both lists follow from the row that was locked. Given up already under the same number: the reply
 * to the same call was lost.
 */
function giveUpStatement(sql: Dialect): string {
  return `with ${heldLookup(sql)}, parked as (
      update ${sql.keys} k set parked_at = ${sql.now}, last_error_code = $4::text from held h where k.id = h.id
      returning ${waitingColumns}
    ), ended as (
      update ${sql.due} d set look_up_at = 'infinity' from held h where d.id = h.id
    ), ${queueWaiting(sql, 'parked')}
    select 1 from parked
    union all
    select 1 from ${sql.keys} k join ${sql.due} d on d.id = k.id
    where k.id = $1::uuid and k.fence = $2::bigint and k.parked_at is not null and d.look = $3::bigint`
}

function unknownsStatement(sql: Dialect): string {
  return `select k.operation, pg_catalog.count(*) as count, pg_catalog.count(k.parked_at) as parked,
      ${epochMs(`(${sql.now} - pg_catalog.min(d.since))`)} as oldest_ms
    from ${sql.due} d join ${sql.keys} k on k.id = d.id group by k.operation order by k.operation`
}
