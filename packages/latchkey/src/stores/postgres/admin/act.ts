/**
 * What a person does to a row, in one transaction: the row is locked, its version compared, the act done, its entry written, its proposal closed.
 */
import type { ActRequest, ActResult, AdminRecords, OperatorAct, RowAct } from '../../../ports/faculties/admin.ts'
import { goneCode } from '../../shared/admin/rows.ts'
import { decides, isSameVersion, versionOf } from '../../shared/admin/version.ts'
import { rowStateOf } from '../../shared/codes.ts'
import type { RawNumber } from '../../shared/record-row.ts'
import type { RunStatement } from '../connection/statement.ts'
import { operatorCalls } from '../keys/operator.ts'
import { queueWaiting, waitingColumns } from '../keys/waiting-list.ts'
import { readable } from '../sql/columns.ts'
import { epochMs, milliseconds, state } from '../sql/fragments.ts'
import { adminNames, type Dialect } from '../sql/names.ts'
import { closeStatement } from './proposals.ts'
import { type Connections, inOneCommit } from './transaction.ts'

interface LockedRow {
  readonly scope: string
  readonly operation: string
  readonly fence: RawNumber
  readonly state: RawNumber
  readonly parked: boolean
  readonly acts: RawNumber | null
  /** Null: not unknown. */
  readonly unknown_for_ms: RawNumber | null
  /** Null: no look-up was asked for yet. */
  readonly asked_ago_ms: RawNumber | null
}

interface ActedRow {
  readonly audit_id: RawNumber
  /** It was this act, on this row. */
  readonly same: boolean
}

export function actCall(connections: Connections): Pick<AdminRecords, 'act'> {
  const { sql } = connections
  const texts = actStatements(sql)
  return {
    act: request =>
      inOneCommit(
        connections,
        run => act({ sql, run, texts }, request),
        // A refusal leaves its proposal open.
        ({ kind }) => kind === 'acted',
      ),
  }
}

interface Acting {
  readonly sql: Dialect
  readonly run: RunStatement
  readonly texts: ReturnType<typeof actStatements>
}

type Refused = Exclude<ActResult, { kind: 'acted' }>

async function act(acting: Acting, request: ActRequest): Promise<ActResult> {
  const { run, texts } = acting
  const { id, by, expected, proposalId } = request
  // Two statements: one that waited for the lock has a snapshot from before the wait.
  await run(texts.lock, [id])
  const [before] = await run<ActedRow>(texts.repeated, [by.requestId, id, request.act.kind])
  if (before?.same === false) return { kind: 'request-reused' }
  if (before !== undefined) return { kind: 'acted', auditId: String(before.audit_id), repeated: true }
  const [row] = await run<LockedRow>(texts.row, [id])
  if (row === undefined) return { kind: 'not-found' }
  if (!isSameVersion(versionOf(row, row.parked), expected)) return { kind: 'row-moved' }
  if (proposalId !== undefined && (await run(texts.approve, [proposalId, readable(by.by)])).length === 0)
    return { kind: 'proposal-closed' }
  const refused = await perform(acting, row, request)
  if (refused !== undefined) return refused
  return { kind: 'acted', auditId: await audited(acting, row, request), repeated: false }
}

/** Undefined: it is done. */
async function perform(acting: Acting, row: LockedRow, request: ActRequest): Promise<Refused | undefined> {
  const { sql, run, texts } = acting
  const { id, act: what, by } = request
  const calls = operatorCalls(sql, run)
  const found = rowStateOf(Number(row.state))
  switch (what.kind) {
    case 'settle': {
      const leftMs = what.verdict.kind === 'never-happened' ? what.quarantineMs - Number(row.unknown_for_ms ?? 0) : 0
      if (found === 'unknown' && leftMs > 0) return { kind: 'quarantine-not-over', leftMs: Math.ceil(leftMs) }
      const settled = await calls.settle(id, what.verdict, by, what.retentionMs)
      return settled.kind === 'settled' ? undefined : settled
    }
    case 'forget': {
      const forgotten = await calls.forget(id, by)
      return forgotten.kind === 'forgotten' ? undefined : forgotten
    }
    case 'unpark': {
      const unparked = await calls.unpark(id, by)
      return unparked.kind === 'unparked' ? undefined : { kind: 'wrong-state', state: found }
    }
    case 'park':
      return (await run(texts.park, [id])).length === 1 ? undefined : { kind: 'wrong-state', state: found }
    case 'look-up': {
      if (found !== 'unknown' || row.parked) return { kind: 'wrong-state', state: found }
      const leftMs = row.asked_ago_ms === null ? 0 : what.notWithinMs - Number(row.asked_ago_ms)
      if (leftMs > 0) return { kind: 'too-soon', leftMs: Math.ceil(leftMs) }
      await run(texts.lookUp, [id])
      return undefined
    }
    case 'propose':
      await run(texts.propose, proposalValues(row, request, what))
      return undefined
    case 'take':
    case 'note':
    case 'reveal':
      return undefined
  }
}

/** Bound to the version that the row has when it is made, which counts it. */
function proposalValues(
  row: LockedRow,
  { id, by }: ActRequest,
  what: Extract<RowAct, { kind: 'propose' }>,
): readonly unknown[] {
  const { fence, version } = versionOf({ ...row, acts: Number(row.acts ?? 0) + 1 }, row.parked)
  return [
    ...[what.proposalId, id, row.scope, row.operation, what.act, what.detail],
    ...[readable(by.by), readable(by.reason), by.evidence === undefined ? null : readable(by.evidence)],
    ...[fence, version, what.expiresInMs],
  ]
}

/** Written with the act by the statement of the act itself. */
const auditsItself: readonly RowAct['kind'][] = ['settle', 'forget', 'unpark']

async function audited({ run, texts }: Acting, row: LockedRow, { id, act: what, by }: ActRequest): Promise<string> {
  if (!auditsItself.includes(what.kind))
    await run(texts.audit, [id, what.kind, ...words(by), detailOf(what), row.scope])
  if (what.kind !== 'forget') await run(texts.count, [id, row.scope, ...notedBy(what, by), decides(what) ? 1 : 0])
  const [entry] = await run<{ readonly audit_id: RawNumber }>(texts.detail, [
    ...[id, by.source, by.requestId, by.evidence === undefined ? null : readable(by.evidence)],
    ...[Number(row.state), what.kind === 'forget' ? goneCode : null, row.fence],
  ])
  return String(entry?.audit_id)
}

function words({ by, reason }: OperatorAct): readonly string[] {
  return [readable(by), readable(reason)]
}

function detailOf(what: RowAct): string {
  return what.kind === 'propose' ? what.act : ''
}

/** Owner, note, and whether a look-up was asked for; null: as it was. */
function notedBy({ kind }: RowAct, { by, reason }: OperatorAct): readonly unknown[] {
  return [kind === 'take' ? readable(by) : null, kind === 'note' ? readable(reason) : null, kind === 'look-up']
}

function actStatements(sql: Dialect) {
  const { details, notes, proposals } = adminNames(sql)
  const parkable = `${state.pending}, ${state.failed_retryable}, ${state.unknown}`
  return {
    lock: `select from ${sql.keys} k where k.id = $1::uuid for update`,
    repeated: `select d.audit_id, coalesce(a.key_id = $2::uuid and a.act = $3::text, false) as same
      from ${details} d join ${sql.audit} a on a.audit_id = d.audit_id where d.request_id = $1::text and d.refused is null`,
    row: `select k.scope, k.operation, k.fence, k.state, k.parked_at is not null as parked, n.acts,
        ${epochMs(`(${sql.now} - u.since)`)} as unknown_for_ms, ${epochMs(`(${sql.now} - n.look_up_asked_at)`)} as asked_ago_ms
      from ${sql.keys} k left join ${notes} n on n.key_id = k.id left join ${sql.due} u on u.id = k.id where k.id = $1::uuid`,
    approve: closeStatement(sql, `'approved'`),
    // A look-up that is under way loses its row to the mark.
    park: `with parked as (
        update ${sql.keys} k set parked_at = ${sql.now}, last_error_code = coalesce(k.last_error_code, 'operator')
        where k.id = $1::uuid and k.state in (${parkable}) and k.parked_at is null
        returning ${waitingColumns}
      ), ended as (
        update ${sql.due} d set look_up_at = 'infinity' where d.id = $1::uuid and exists (select from parked)
      ), ${queueWaiting(sql, 'parked')}
      select 1 from parked`,
    // It does not count as one of those that were planned.
    lookUp: `update ${sql.due} d set look_up_at = ${sql.now}, tries = greatest(d.tries - 1, 0) where d.id = $1::uuid`,
    propose: `insert into ${proposals} (proposal_id, key_id, scope, operation, act, detail, actor, reason, evidence, fence, version, at, expires_at)
      select $1::uuid, $2::uuid, $3::text, $4::text, $5::text, $6::text, $7::text, $8::text, $9::text, $10::bigint, $11::bigint, t.now,
        t.now + ${milliseconds('$12')} from (select ${sql.now} as now) t`,
    audit: `insert into ${sql.audit} (key_id, act, actor, reason, detail, at, scope)
      values ($1::uuid, $2::text, $3::text, $4::text, $5::text, ${sql.now}, $6::text)`,
    count: `insert into ${notes} as n (key_id, scope, owner, note, acts, look_up_asked_at)
      values ($1::uuid, $2::text, $3::text, $4::text, $6::integer, case when $5::boolean then ${sql.now} end)
      on conflict (key_id) do update set acts = n.acts + excluded.acts, owner = coalesce(excluded.owner, n.owner),
        note = coalesce(excluded.note, n.note), look_up_asked_at = coalesce(excluded.look_up_asked_at, n.look_up_asked_at)`,
    // The entry is the last one of the row, which is locked.
    detail: `insert into ${details} (audit_id, source, request_id, evidence, from_state, to_state, fence)
      select (select pg_catalog.max(a.audit_id) from ${sql.audit} a where a.key_id = $1::uuid), $2::text, $3::text, $4::text, $5::smallint,
        coalesce($6::smallint, (select k.state from ${sql.keys} k where k.id = $1::uuid)), $7::bigint
      returning audit_id`,
  }
}
