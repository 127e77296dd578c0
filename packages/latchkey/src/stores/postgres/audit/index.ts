/** The trail: lines that outlive their rows, added and read by the application, deleted by functions with rights of their own. */
import type {
  AuditedEnd,
  AuditLine,
  AuditPage,
  AuditQuery,
  AuditRecords,
} from '../../../ports/faculties/audit-records.ts'
import type { Store } from '../../../ports/store.ts'
import { afterText, positionOf } from '../../shared/audit-page.ts'
import { pageSize } from '../../shared/listing.ts'
import type { RawNumber } from '../../shared/record-row.ts'
import type { RunStatement } from '../connection/statement.ts'
import { readable } from '../sql/columns.ts'
import { epochMs, milliseconds } from '../sql/fragments.ts'
import type { Dialect } from '../sql/names.ts'

interface LineRow {
  readonly line_id: RawNumber
  readonly at_us: RawNumber
  readonly at_ms: RawNumber
  readonly what: AuditedEnd
  readonly scope: string | null
  readonly operation: string
  readonly key_id: string
  readonly fence: RawNumber
  readonly status: RawNumber | null
  readonly fingerprint: Uint8Array | null
}

export function postgresAuditRecords<Tx>(
  sql: Dialect,
  run: RunStatement,
  recording: () => Store<Tx>,
): AuditRecords<Tx> {
  const texts = {
    add: addStatement(sql),
    page: pageStatement(sql),
    expire: `select ${sql.schema}.expire_audit_records_12($1::float8, $2::integer) as deleted`,
    take: takeStatement(sql),
    handOver: `select ${sql.schema}.hand_over_audit_records_12($1::bigint, $2::bigint[], $3::float8) as done`,
    giveBack: `update ${sql.auditSink} s set locked_until = null where s.run = $1::bigint`,
  }
  return {
    recording,
    async addMisuse({ identity: { id, scope, operation }, fingerprint }) {
      await run(texts.add, [id, readable(scope), readable(operation), fingerprint])
    },
    async page(query) {
      const size = pageSize(query.limit)
      return pageOf(await run<LineRow>(texts.page, pageValues(query, size)), size)
    },
    async expire({ olderThanMs, limit }) {
      const [row] = await run<{ readonly deleted: RawNumber }>(texts.expire, [olderThanMs, limit])
      return Number(row?.deleted ?? 0)
    },
    async take({ limit, leaseMs }) {
      const rows = await run<LineRow & { readonly run: RawNumber }>(texts.take, [leaseMs, limit])
      const [first] = rows
      return first && { run: Number(first.run), lines: rows.map(lineOf) }
    },
    async handedOver({ run: of, lines }) {
      const ids = lines.map(({ lineId }) => lineId)
      // The instants are rounded down.
      const throughMs = Math.max(...lines.map(({ atMs }) => atMs)) + 1
      const [row] = await run<{ readonly done: boolean }>(texts.handOver, [of, ids, throughMs])
      return row?.done === true ? 'written' : 'claim-lost'
    },
    async giveBack({ run: of }) {
      await run(texts.giveBack, [of])
    },
  }
}

function pageValues({ scope, id, fromMs, after }: AuditQuery, size: number): readonly unknown[] {
  const [atUs, lineId] = after === undefined ? [null, null] : positionOf(after)
  return [scope === undefined ? null : readable(scope), id ?? null, fromMs ?? null, atUs, lineId, size + 1]
}

function pageOf(rows: readonly LineRow[], size: number): AuditPage {
  const last = rows[size - 1]
  const next = rows.length > size && last !== undefined ? afterText(last.at_us, last.line_id) : undefined
  return { lines: rows.slice(0, size).map(lineOf), next }
}

function lineOf(row: LineRow): AuditLine {
  return {
    lineId: String(row.line_id),
    atMs: Math.floor(Number(row.at_ms)),
    what: row.what,
    scope: row.scope ?? undefined,
    operation: row.operation,
    id: row.key_id,
    fence: Number(row.fence),
    status: row.status === null ? undefined : Number(row.status),
    fingerprint: row.fingerprint ?? undefined,
  }
}

/** The columns of `LineRow`, from the row `r`. */
const columns = `r.line_id::text as line_id, (extract(epoch from r.at) * 1000000.0)::bigint::text as at_us, ${epochMs('r.at')} as at_ms,
      r.what, r.scope, r.operation, r.key_id, r.fence, r.status, r.fingerprint`

function addStatement({ auditRecords, keys, now }: Dialect): string {
  return `insert into ${auditRecords} (at, key_id, fence, scope, operation, what, fingerprint)
    values (${now}, $1::uuid, coalesce((select k.fence from ${keys} k where k.id = $1::uuid), 0), $2::text, $3::text, 'misuse', $4::bytea)`
}

function pageStatement({ auditRecords }: Dialect): string {
  const after = `(timestamptz 'epoch' + $4::float8 * interval '1 microsecond', $5::bigint)`
  return `select ${columns} from ${auditRecords} r
    where ($1::text is null or r.scope = $1::text) and ($2::uuid is null or r.key_id = $2::uuid)
      and ($3::float8 is null or r.at >= timestamptz 'epoch' + ${milliseconds('$3')})
      and ($5::bigint is null or (r.at, r.line_id) > ${after})
    order by r.at, r.line_id limit $6::integer`
}

/** Atomic: one statement; the lines are read only by the process that has got the lease. Without lines nothing is written. */
function takeStatement({ auditRecords, auditSink, now }: Dialect): string {
  return `with leased as (
      update ${auditSink} s set run = s.run + 1, locked_until = ${now} + ${milliseconds('$1')}
      where (s.locked_until is null or s.locked_until <= ${now}) and exists (select from ${auditRecords} r)
      returning s.run
    )
    select l.run, ${columns} from leased l cross join lateral (
      select * from ${auditRecords} o order by o.at, o.line_id limit $2::integer
    ) r order by r.at, r.line_id`
}
