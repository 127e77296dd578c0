/** A parked message that is never delivered, in one transaction with its entry of the audit. */
import type { AdminRecords, SkipRequest, SkipResult } from '../../../ports/faculties/admin.ts'
import { skippedEntry } from '../../shared/outbox/skipped.ts'
import type { RawNumber } from '../../shared/record-row.ts'
import type { RunStatement } from '../connection/statement.ts'
import { isPosition } from '../outbox/operate.ts'
import { wakeNext } from '../outbox/settle.ts'
import { adminNames, type Dialect, outboxNames } from '../sql/names.ts'
import { entryText, entryValues } from './entries.ts'
import { type Connections, inOneCommit } from './transaction.ts'

interface SkippedRow {
  readonly lane: RawNumber
  readonly aggregate: string | null
  readonly topic: string
  readonly dedup_id: string
  readonly scope: string | null
}

interface AuditRow {
  readonly audit_id: RawNumber
}

export function skipCall(connections: Connections): Pick<AdminRecords, 'skip'> {
  const texts = skipStatements(connections.sql)
  return {
    async skip(request) {
      if (!isPosition(request.position)) return { kind: 'not-found' }
      return inOneCommit(
        connections,
        run => skip(run, texts, request),
        ({ kind }) => kind === 'acted',
      )
    },
  }
}

async function skip(
  run: RunStatement,
  texts: ReturnType<typeof skipStatements>,
  request: SkipRequest,
): Promise<SkipResult> {
  const { position, by } = request
  await run(texts.lock, [position])
  const [before] = await run<AuditRow>(texts.repeated, [by.requestId])
  if (before !== undefined) return { kind: 'acted', auditId: String(before.audit_id), repeated: true }
  const [row] = await run<SkippedRow>(texts.skip, [position])
  if (row === undefined) return { kind: 'not-found' }
  const { lane, aggregate, topic, dedup_id: dedupId, scope } = row
  if (aggregate !== null) await run(texts.wake, [lane, aggregate])
  const message = { topic, aggregate: aggregate ?? undefined, dedupId, scope: scope ?? undefined }
  const [entry] = await run<AuditRow>(texts.entry, entryValues(skippedEntry(request, message)))
  return { kind: 'acted', auditId: String(entry?.audit_id), repeated: false }
}

function skipStatements(sql: Dialect) {
  const names = outboxNames(sql)
  return {
    // As a relay does it: first the lane, then its messages. So neither waits for the other in a circle.
    lock: `select from ${names.lanes} l where l.lane = (select p.lane from ${names.parked} p where p.id = $1::bigint) for update`,
    repeated: `select d.audit_id from ${adminNames(sql).details} d where d.request_id = $1::text and d.refused is null`,
    // Below the cursor and not aside any more, it is pruned like one that was delivered.
    skip: `delete from ${names.parked} p using ${names.outbox} o
      where p.id = $1::bigint and p.parked_at is not null and o.id = p.id
      returning p.lane, p.aggregate, o.topic, o.dedup_id, o.scope`,
    wake: `with freed as (select $1::smallint as lane, $2::text as aggregate)
      ${wakeNext(sql, names, 'freed')}`,
    entry: entryText(sql),
  }
}
