/** What operators and the reaper do with messages. */
import type { Outbox, OutboxLag, ParkedMessage, Redrive } from '../../../ports/outbox.ts'
import { historyFrom, lagCountMax, parkedListMax } from '../../shared/outbox/message.ts'
import type { RawNumber } from '../../shared/record-row.ts'
import type { RunStatement } from '../connection/statement.ts'
import { epochMs, milliseconds } from '../sql/fragments.ts'
import type { Dialect, OutboxNames } from '../sql/names.ts'
import { readable } from '../sql/columns.ts'
import { isAfterCursor, isBelowHorizon } from './lanes.ts'
import { messageColumns, messageOf, type MessageRow } from './next.ts'

type ParkedRow = MessageRow & { readonly cause: string; readonly history: string; readonly parked_at_ms: RawNumber }
type OperatorCalls = Pick<Outbox<unknown>, 'parked' | 'redrive' | 'redrives' | 'downstreamId' | 'prune' | 'lag'>
type LagRow = Readonly<Record<'waiting' | 'held_back' | 'oldest_ms' | 'parked', RawNumber>>

export function operatorCalls(sql: Dialect, names: OutboxNames, run: RunStatement): OperatorCalls {
  const texts = {
    parked: parkedStatement(names),
    redrive: redriveStatement(sql, names),
    redrives: redrivesStatement(names),
    prune: pruneStatement(sql, names),
    lag: lagStatement(sql, names),
  }
  return {
    async parked({ limit, after }) {
      const values = [isPosition(after) ? after : '0', Math.min(limit, parkedListMax)]
      return (await run<ParkedRow>(texts.parked, values)).map(parkedMessage)
    },
    async redrive(position, { by, reason }) {
      if (!isPosition(position)) return { kind: 'not-found' }
      const rows = await run(texts.redrive, [position, readable(by), readable(reason)])
      return { kind: rows.length === 1 ? 'redriven' : 'not-found' }
    },
    async redrives(position) {
      if (!isPosition(position)) return []
      const rows = await run<{ by: string; reason: string; at_ms: RawNumber }>(texts.redrives, [position])
      return rows.map(({ by, reason, at_ms }): Redrive => ({ by, reason, atMs: Math.floor(Number(at_ms)) }))
    },
    async downstreamId(position) {
      if (!isPosition(position)) return undefined
      const text = `select d.downstream_id from ${names.delivered} d where d.id = $1::bigint`
      const [row] = await run<{ downstream_id: string }>(text, [position])
      return row?.downstream_id
    },
    async prune({ limit, keepMs }) {
      return (await run(texts.prune, [limit, keepMs])).length
    },
    async lag() {
      const [row] = await run<LagRow>(texts.lag, [])
      return lagOf(row)
    },
  }
}

/** What an operator hands in may be anything; what is not a position names no message. */
export function isPosition(text: string | undefined): text is string {
  return text !== undefined && /^\d{1,18}$/.test(text)
}

function parkedMessage(row: ParkedRow): ParkedMessage {
  const { cause, history, parked_at_ms } = row
  return { ...messageOf(row), cause, history: historyFrom(history), parkedAtMs: Math.floor(Number(parked_at_ms)) }
}

function lagOf(row: LagRow | undefined): OutboxLag {
  return {
    waiting: Number(row?.waiting ?? 0),
    heldBack: Number(row?.held_back ?? 0),
    oldestMs: Math.max(0, Math.ceil(Number(row?.oldest_ms ?? 0))),
    parked: Number(row?.parked ?? 0),
  }
}

function parkedStatement({ parked, outbox }: OutboxNames): string {
  return `select ${messageColumns}, p.attempts, p.crashes, p.cause, p.history::text as history,
      ${epochMs('p.parked_at')} as parked_at_ms
    from ${parked} p join ${outbox} o on o.id = p.id
    where p.parked_at is not null and p.id > $1::bigint order by p.id limit $2::integer`
}

/** In place: deleted and inserted again, it would be lost if the process died in between, and its history with it. */
function redriveStatement(sql: Dialect, { parked, audit }: OutboxNames): string {
  return `with redriven as (
      update ${parked} p set parked_at = null, due_at = ${sql.now}, attempts = 0, crashes = 0
      where p.id = $1::bigint and p.parked_at is not null returning p.id
    )
    insert into ${audit} (message_id, act, actor, reason, at)
    select r.id, 'redrive', $2::text, $3::text, ${sql.now} from redriven r returning audit_id`
}

function redrivesStatement({ audit }: OutboxNames): string {
  return `select a.actor as by, a.reason, ${epochMs('a.at')} as at_ms
    from ${audit} a where a.message_id = $1::bigint order by a.audit_id`
}

/** Below the cursor of its lane and not aside: delivered. Two reapers at once skip each other's rows. */
function pruneStatement(sql: Dialect, names: OutboxNames): string {
  return `with old as materialized (
      select o.id from ${names.lanes} l cross join lateral (
        select o.id from ${names.outbox} o
        where o.lane = l.lane and (o.xid, o.id) <= (l.cursor_xid, l.cursor_id)
          and o.created_at <= ${sql.now} - ${milliseconds('$2')}
          and not exists (select from ${names.parked} p where p.id = o.id)
        order by o.xid, o.id limit $1::integer for update skip locked) o
      limit $1::integer
    ), forgotten as (
      delete from ${names.delivered} d where d.id = any(array(select old.id from old))
    )
    delete from ${names.outbox} o where o.id = any(array(select old.id from old)) returning o.id`
}

export function lagStatement(sql: Dialect, names: OutboxNames): string {
  return `with waiting as materialized (
      (select o.created_at, o.held_back from ${names.lanes} l cross join lateral (
        select o.created_at, not (${isBelowHorizon('o')}) as held_back from ${names.outbox} o
        where o.lane = l.lane and ${isAfterCursor('o')} order by o.xid, o.id limit ${lagCountMax}) o
      limit ${lagCountMax})
      union all
      (select o.created_at, false from ${names.parked} p join ${names.outbox} o on o.id = p.id
      where p.parked_at is null limit ${lagCountMax})
    )
    select least(pg_catalog.count(*), ${lagCountMax}) as waiting, pg_catalog.count(*) filter (where w.held_back) as held_back,
      ${epochMs(`(${sql.now} - pg_catalog.min(w.created_at))`)} as oldest_ms,
      (select pg_catalog.count(*) from ${names.parked} p where p.parked_at is not null) as parked
    from waiting w`
}
