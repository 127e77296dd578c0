/** Erasing what is stored of one tenant, a batch at a time. Safe from several processes at once: they skip each other's rows. */
import { type ErasedBatch, type Erasure, isEmpty } from '../../../ports/faculties/erasure.ts'
import { lagCountMax as countedMax } from '../../shared/outbox/message.ts'
import type { RawNumber } from '../../shared/record-row.ts'
import type { RunStatement } from '../connection/statement.ts'
import { readable } from '../sql/columns.ts'
import { inBucketOf, state, stepState } from '../sql/fragments.ts'
import { type Dialect, outboxNames } from '../sql/names.ts'
import { dropJournals } from '../steps/journal.ts'

type Blanked = { readonly texts: RawNumber; readonly lines: RawNumber }
/** Acts of people: a tenant has few of them. */
const blankTurnsMax = 1_000

type Left = { readonly rows: RawNumber; readonly messages: RawNumber }

export function postgresErasure(sql: Dialect, run: RunStatement): Erasure {
  const texts = {
    mark: markStatement(sql),
    evidence: orphansStatement(sql),
    admin: `select ${sql.schema}.erase_admin_16($1::text, $2::integer) as texts`,
    audit: `select ${sql.schema}.erase_audit_11($1::text, $2::integer) as texts,
      ${sql.schema}.erase_audit_records_12($1::text, $2::integer) as lines`,
    rows: rowsStatement(sql),
    messages: messagesStatement(sql),
    left: leftStatement(sql),
    end: `update ${sql.erasures} e set scope = null, ended_at = ${sql.now} where e.scope = $1::text`,
  }
  return {
    async mark(scope) {
      await run(texts.mark, [readable(scope)])
    },
    async erase({ scope, limit }) {
      const values = [readable(scope), limit]
      // In this order: the audit of a row is found through the row, and the evidence of a forgotten one through its audit.
      await run(texts.evidence, [readable(scope)])
      await untilBlank(run, texts.admin, values)
      const [audit] = await run<Blanked>(texts.audit, values)
      const blanked = { auditTexts: Number(audit?.texts ?? 0), auditLines: Number(audit?.lines ?? 0) }
      if (blanked.auditTexts > 0) return { rows: 0, messages: 0, ...blanked }
      const rows = await run(texts.rows, values)
      return { rows: rows.length, messages: (await run(texts.messages, values)).length, ...blanked }
    },
    async left(scope) {
      const [row] = await run<Left>(texts.left, [readable(scope)])
      const left = { openRows: Number(row?.rows ?? 0), waitingMessages: Number(row?.messages ?? 0) }
      if (left.openRows === 0 && left.waitingMessages === 0) await run(texts.end, [readable(scope)])
      return left
    },
  }
}

/** Before the audit, whose entries lose their scope: what stands beside them is found by it. A batch, and the rest with the next call. */
async function untilBlank(run: RunStatement, text: string, values: readonly unknown[]): Promise<void> {
  for (let turns = 0; turns < blankTurnsMax; turns += 1) {
    const [row] = await run<Pick<Blanked, 'texts'>>(text, values)
    if (Number(row?.texts ?? 0) === 0) return
  }
}

/** For every `reap`: one batch of each erasure that is not at its end. */
export function eraseMarked(sql: Dialect, run: RunStatement, erasure: Erasure): (limit: number) => Promise<number> {
  const text = `select e.scope from ${sql.erasures} e where e.scope is not null order by e.marked_at limit 10`
  return async limit => {
    let erased = 0
    for (const { scope } of await run<{ readonly scope: string }>(text, [])) {
      const batch: ErasedBatch = await erasure.erase({ scope, limit })
      erased += batch.rows
      if (isEmpty(batch)) await erasure.left(scope)
    }
    return erased
  }
}

function markStatement({ erasures, now }: Dialect): string {
  return `insert into ${erasures} (scope_hash, scope, marked_at)
    values (pg_catalog.sha256(pg_catalog.convert_to($1::text, 'UTF8')), $1::text, ${now})
    on conflict (scope_hash) do update set scope = excluded.scope, marked_at = excluded.marked_at, ended_at = null`
}

/** Evidence about rows that were forgotten: the audit says whose they were. */
function orphansStatement({ evidence, audit, keys }: Dialect): string {
  return `delete from ${evidence} e where e.key_id in (select a.key_id from ${audit} a where a.scope = $1::text)
    and not exists (select from ${keys} k where k.id = e.key_id)`
}

/** The rows `k` of the scope, by the index on its bucket. */
function isOfScope(scope: string): string {
  return `${inBucketOf(scope)} and k.scope = ${scope}`
}

function hasEnded({ steps }: Dialect): string {
  return `(k.state = ${state.completed} or k.state = ${state.failed_retryable} and k.parked_at is null
        and not exists (select from ${steps} p where p.id = k.id and p.state = ${stepState.open}))`
}

/** Atomic: rows are locked, compared again and deleted with all that belongs to them. */
function rowsStatement(sql: Dialect): string {
  return `with ended as materialized (
      select k.id from ${sql.keys} k
      where ${isOfScope('$1::text')} and ${hasEnded(sql)}
        and k.created_at <= (select e.marked_at from ${sql.erasures} e where e.scope = $1::text)
      limit $2::integer for update of k skip locked
    ), gone as (
      delete from ${sql.keys} k where k.id = any(array(select e.id from ended e)) returning k.id
    ), outcomes_gone as (
      delete from ${sql.outcomes} o where o.id = any(array(select g.id from gone g))
    ), evidence_gone as (
      delete from ${sql.evidence} e where e.key_id = any(array(select g.id from gone g))
    ), ${dropJournals(sql, 'gone')}
    select g.id from gone g`
}

/** Below the cursor of its lane and not aside: delivered. */
function isDelivered(sql: Dialect): string {
  const { lanes, parked } = outboxNames(sql)
  return `exists (select from ${lanes} l where l.lane = o.lane and (o.xid, o.id) <= (l.cursor_xid, l.cursor_id))
        and not exists (select from ${parked} p where p.id = o.id)`
}

function messagesStatement(sql: Dialect): string {
  const { outbox, delivered } = outboxNames(sql)
  return `with ended as materialized (
      select o.id from ${outbox} o where o.scope = $1::text and ${isDelivered(sql)}
        and o.created_at <= (select e.marked_at from ${sql.erasures} e where e.scope = $1::text)
      limit $2::integer for update of o skip locked
    ), named as (
      delete from ${delivered} d where d.id = any(array(select e.id from ended e))
    )
    delete from ${outbox} o where o.id = any(array(select e.id from ended e)) returning o.id`
}

function leftStatement(sql: Dialect): string {
  const { outbox } = outboxNames(sql)
  const marked = `(select e.marked_at from ${sql.erasures} e where e.scope = $1::text)`
  return `select
      (select pg_catalog.count(*) from (select from ${sql.keys} k where ${isOfScope('$1::text')} and k.created_at <= ${marked}
        limit ${countedMax}) k) as rows,
      (select pg_catalog.count(*) from (select from ${outbox} o where o.scope = $1::text and o.created_at <= ${marked}
        limit ${countedMax}) o) as messages`
}
