/** Messages that consumers have parked. Each call is one statement, and an act of an operator commits with its audit entry. */
import type { NewParkedInboxMessage, ParkedInbox, RedriveEnd } from '../../../ports/faculties/inbox.ts'
import { pageSize } from '../../shared/listing.ts'
import {
  actOf,
  type InboxActRow,
  parkedCountMax,
  type ParkedHeadRow,
  parkedOf,
  parkedPage,
  type ParkedRow,
  seqAfter,
} from '../../shared/inbox/parked-row.ts'
import type { RawNumber } from '../../shared/record-row.ts'
import type { RunStatement } from '../connection/statement.ts'
import { readable } from '../sql/columns.ts'
import { epochMs, milliseconds, state } from '../sql/fragments.ts'
import type { Dialect } from '../sql/names.ts'

type ActedRow = { readonly acted: boolean; readonly taken: boolean }
type TakenRow = ParkedRow & { readonly run: RawNumber }

export function postgresInbox(sql: Dialect, run: RunStatement): ParkedInbox {
  const texts = {
    park: parkStatement(sql),
    list: listStatement(sql),
    message: `select ${headColumns(sql)}, ${bodyColumns} from ${sql.inboxParked} p where p.id = $1::uuid`,
    audit: auditStatement(sql),
    redrive: redriveStatement(sql),
    discard: discardStatement(sql),
    take: takeStatement(sql),
    renew: `update ${sql.inboxParked} p set locked_until = ${sql.now} + ${milliseconds('$3')} where ${isOwned} returning p.id`,
    ...endStatements(sql),
    waiting: `select pg_catalog.count(*) as waiting from (
      select from ${sql.inboxParked} p where p.due_at is null limit ${parkedCountMax}) p`,
  }
  return {
    async park(message) {
      await run(texts.park, parkValues(message))
    },
    async list({ consumer = null, cause = null, limit, after }: Nullable) {
      const rows = await run<ParkedHeadRow>(texts.list, [seqAfter(after), consumer, cause, pageSize(limit) + 1])
      return parkedPage(rows, limit)
    },
    async inspect(id) {
      const [row] = await run<ParkedRow>(texts.message, [id])
      return { message: row && parkedOf(row), audit: (await run<InboxActRow>(texts.audit, [id])).map(actOf) }
    },
    async redrive(id, { by, reason }, as) {
      const [row] = await run<ActedRow>(texts.redrive, [id, readable(by), readable(reason), as ?? null])
      if (row === undefined) return { kind: 'not-found' }
      if (row.acted) return { kind: 'redriven' }
      return { kind: row.taken ? 'taken' : 'needs-id' }
    },
    async discard(id, { by, reason }) {
      const [row] = await run<ActedRow>(texts.discard, [id, readable(by), readable(reason)])
      if (row === undefined) return { kind: 'not-found' }
      return { kind: row.acted ? 'discarded' : 'taken' }
    },
    async take({ consumer, operation, leaseMs }) {
      const [row] = await run<TakenRow>(texts.take, [consumer, operation, leaseMs])
      return row && { run: Number(row.run), message: parkedOf(row) }
    },
    async renew({ run: of, message }, leaseMs) {
      return (await run(texts.renew, [message.id, of, leaseMs])).length === 1 ? 'written' : 'claim-lost'
    },
    async settle({ run: of, message }, end) {
      return (await run(texts[end.kind], [message.id, of, ...endValues(end)])).length === 1 ? 'written' : 'claim-lost'
    },
    async waiting() {
      const [row] = await run<{ readonly waiting: RawNumber }>(texts.waiting, [])
      return Number(row?.waiting ?? 0)
    },
  }
}

/** A filter that is not given is null. */
interface Nullable {
  readonly consumer?: string | null
  readonly cause?: string | null
  readonly limit: number
  readonly after?: string
}

function headColumns({ now }: Dialect): string {
  return `p.id, p.seq, p.consumer, p.operation, p.source, p.message_id, p.type, p.content_type, p.position, p.cause, p.key_id,
    p.attempts, p.times, ${epochMs('p.first_parked_at')} as first_parked_at_ms, ${epochMs('p.parked_at')} as parked_at_ms,
    p.redrive_as, ${epochMs(`(p.due_at - ${now})`)} as due_in_ms`
}

const bodyColumns = 'p.is_json, p.headers, p.payload'

/** The owner's row: no other process has taken it since. */
const isOwned = 'p.id = $1::uuid and p.run = $2::bigint and p.locked_until is not null'

function isTaken({ now }: Dialect): string {
  return `((p.locked_until > ${now}) is true)`
}

/** Atomic: a message that comes again at the same moment waits for the first, and becomes one more time of it. */
function parkStatement({ inboxParked, now }: Dialect): string {
  return `insert into ${inboxParked} as p (id, consumer, operation, source, message_id, type, content_type, position, cause, key_id, attempts,
      is_json, headers, payload, first_parked_at, parked_at)
    select $1::uuid, $2::text, $3::text, $4::text, $5::text, $6::text, $7::text, $8::text, $9::text, $10::uuid, $11::integer,
      $12::boolean, $13::text, $14::bytea, n.at, n.at from (select ${now} as at) n
    on conflict (id) do update set cause = excluded.cause, attempts = excluded.attempts, times = p.times + 1,
      parked_at = excluded.parked_at
    returning p.id`
}

function parkValues(message: NewParkedInboxMessage): readonly unknown[] {
  const { id, consumer, operation, source, messageId, type, contentType, position, cause, rowId, attempts } = message
  const { buffer, byteOffset, byteLength } = message.payload
  const texts = [messageId, type, contentType, position].map(text => text ?? null)
  return [
    ...[id, consumer, operation, source, ...texts, cause, rowId ?? null, attempts],
    ...[message.form === 'json', JSON.stringify(message.headers), Buffer.from(buffer, byteOffset, byteLength)],
  ]
}

function listStatement(sql: Dialect): string {
  return `select ${headColumns(sql)} from ${sql.inboxParked} p
    where p.seq > $1::bigint and ($2::text is null or p.consumer = $2::text) and ($3::text is null or p.cause = $3::text)
    order by p.seq limit $4::integer`
}

function auditStatement({ inboxAudit }: Dialect): string {
  return `select a.act, a.actor as by, a.reason, a.detail, ${epochMs('a.at')} as at_ms
    from ${inboxAudit} a where a.parked_id = $1::uuid order by a.audit_id`
}

/** Atomic: the update compares the lease under the row's lock, and the audit entry is inserted from what it returned. */
function redriveStatement(sql: Dialect): string {
  return `with seen as materialized (
      select p.id, ${isTaken(sql)} as taken from ${sql.inboxParked} p where p.id = $1::uuid
    ), acted as (
      update ${sql.inboxParked} p set due_at = ${sql.now}, redrive_as = $4::text
      where p.id = $1::uuid and not ${isTaken(sql)} and (p.message_id is not null or $4::text is not null)
      returning p.id, p.consumer, p.cause, p.redrive_as
    ), audited as (
      insert into ${sql.inboxAudit} (parked_id, act, actor, reason, detail, at)
      select a.id, 'redrive', $2::text, $3::text,
        pg_catalog.concat(a.consumer, ' ', a.cause, case when a.redrive_as is not null then pg_catalog.concat(', as ', a.redrive_as) end), ${sql.now}
      from acted a
    )
    select s.taken, exists (select from acted) as acted from seen s`
}

/** Atomic, as above. */
function discardStatement(sql: Dialect): string {
  return `with seen as materialized (
      select p.id, ${isTaken(sql)} as taken from ${sql.inboxParked} p where p.id = $1::uuid
    ), acted as (
      delete from ${sql.inboxParked} p where p.id = $1::uuid and not ${isTaken(sql)} returning p.id, p.consumer, p.cause
    ), audited as (
      insert into ${sql.inboxAudit} (parked_id, act, actor, reason, detail, at)
      select a.id, 'discard', $2::text, $3::text, pg_catalog.concat(a.consumer, ' ', a.cause), ${sql.now} from acted a
    )
    select s.taken, exists (select from acted) as acted from seen s`
}

/**
 * Atomic: the row is locked and compared again before it is leased; a process that comes at the same moment skips it. A row of the key that is gone
 * proves nothing: its message waits for an operator.
 */
function takeStatement(sql: Dialect): string {
  return `with oldest as materialized (
      select p.id from ${sql.inboxParked} p left join ${sql.keys} k on k.id = p.key_id
      where p.consumer = $1::text and p.operation = $2::text and (p.due_at is not null or p.cause = 'unknown')
        and not ${isTaken(sql)} and (p.due_at <= ${sql.now} or p.due_at is null and k.state <> ${state.unknown})
      order by p.seq limit 1 for update of p skip locked
    )
    update ${sql.inboxParked} p set run = p.run + 1, locked_until = ${sql.now} + ${milliseconds('$3')}
    from oldest o where p.id = o.id returning p.run, ${headColumns(sql)}, ${bodyColumns}`
}

function endStatements({ inboxParked, now }: Dialect): Readonly<Record<RedriveEnd['kind'], string>> {
  return {
    done: `delete from ${inboxParked} p where ${isOwned} returning p.id`,
    retry: `update ${inboxParked} p set locked_until = null, due_at = ${now} + ${milliseconds('$3')} where ${isOwned} returning p.id`,
    parked: `update ${inboxParked} p set locked_until = null, due_at = null, redrive_as = null, cause = $3::text,
        attempts = $4::integer, times = p.times + 1, parked_at = ${now}
      where ${isOwned} returning p.id`,
  }
}

function endValues(end: RedriveEnd): readonly unknown[] {
  switch (end.kind) {
    case 'done':
      return []
    case 'retry':
      return [end.dueInMs]
    case 'parked':
      return [end.cause, end.attempts]
  }
}
