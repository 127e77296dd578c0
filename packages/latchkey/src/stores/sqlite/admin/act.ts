/** What a person does to a row, in one write transaction: its version is compared, the act done, its entry written, its proposal closed. */
import type { ActRequest, ActResult, OperatorAct, RowAct } from '../../../ports/faculties/admin.ts'
import { goneCode } from '../../shared/admin/rows.ts'
import { decides, isSameVersion, versionOf } from '../../shared/admin/version.ts'
import { rowStateOf, stateCodes } from '../../shared/codes.ts'
import type { Handle } from '../connection/handle.ts'
import type { SqliteParameter } from '../driver.ts'
import { forget, unpark } from '../keys/operator.ts'
import { readNowMs, storable } from '../keys/row.ts'
import { settle } from '../reconcile/settle.ts'
import { rowsAs } from './columns.ts'
import { actedBefore } from './entries.ts'
import { closeProposal } from './proposals.ts'

interface SeenRow {
  readonly scope: string
  readonly operation: string
  readonly fence: number
  readonly state: number
  readonly parked: number
  readonly acts: number | null
  readonly since_ms: number | null
  readonly look_up_asked_at_ms: number | null
}

type Refused = Exclude<ActResult, { kind: 'acted' }>

const rowSql = `
  SELECT k.scope, k.operation, k.fence, k.state, k.parked_at_ms IS NOT NULL AS parked, n.acts, l.since_ms, n.look_up_asked_at_ms
  FROM latchkey_keys AS k LEFT JOIN latchkey_notes AS n ON n.id = k.id LEFT JOIN latchkey_lookups AS l ON l.id = k.id
  WHERE k.id = ?1`

export function act(handle: Handle, request: ActRequest): ActResult {
  const { id, by, expected, proposalId } = request
  const before = actedBefore(handle, by.requestId)
  if (before !== undefined)
    return isEntryOf(handle, before, request)
      ? { kind: 'acted', auditId: before, repeated: true }
      : { kind: 'request-reused' }
  const [row] = rowsAs<SeenRow>(handle, rowSql, [id])
  if (row === undefined) return { kind: 'not-found' }
  if (!isSameVersion(versionOf(row, row.parked === 1), expected)) return { kind: 'row-moved' }
  // Looked at before the act, and closed after it: a refusal leaves it open.
  if (proposalId !== undefined && !isOpen(handle, proposalId)) return { kind: 'proposal-closed' }
  const refused = perform(handle, row, request)
  if (refused !== undefined) return refused
  if (proposalId !== undefined) closeProposal(handle, proposalId, { to: 'approved', by: by.by })
  return { kind: 'acted', auditId: audited(handle, row, request), repeated: false }
}

const entrySql = 'SELECT seq FROM latchkey_audit WHERE seq = ?1 AND id = ?2 AND act = ?3'

function isEntryOf(handle: Handle, auditId: string, { id, act: what }: ActRequest): boolean {
  return handle.rows(entrySql, [Number(auditId), id, what.kind]).length === 1
}

const openSql = `SELECT seq FROM latchkey_proposals WHERE proposal_id = ?1 AND state = 'open' AND expires_at_ms > ?2`

function isOpen(handle: Handle, proposalId: string): boolean {
  return handle.rows(openSql, [proposalId, readNowMs(handle)]).length === 1
}

const { pending, failed_retryable: failedRetryable, unknown } = stateCodes
const parkSql = `
  UPDATE latchkey_keys SET parked_at_ms = ?2, last_error_code = COALESCE(last_error_code, 'operator')
  WHERE id = ?1 AND state IN (${pending}, ${failedRetryable}, ${unknown}) AND parked_at_ms IS NULL`
// A look-up that is under way loses its row: its owner finds that it has ended.
const endLookUpsSql =
  'UPDATE latchkey_lookups SET look_up_at_ms = NULL, looked_until_ms = NULL, look = look + 1 WHERE id = ?1'
// It does not count as one of those that were planned. `look` above zero: when it is due no longer follows from when the row became unknown.
const lookUpSql = `
  UPDATE latchkey_lookups SET look_up_at_ms = ?2, looked_until_ms = NULL, tries = MAX(tries - 1, 0), look = look + 1 WHERE id = ?1`

/** Undefined: it is done. */
function perform(handle: Handle, row: SeenRow, request: ActRequest): Refused | undefined {
  const { id, act: what, by } = request
  const state = rowStateOf(row.state)
  const nowMs = readNowMs(handle)
  switch (what.kind) {
    case 'settle': {
      const { verdict, quarantineMs, retentionMs } = what
      const leftMs = verdict.kind === 'never-happened' ? quarantineMs - (nowMs - (row.since_ms ?? nowMs)) : 0
      if (state === 'unknown' && leftMs > 0) return { kind: 'quarantine-not-over', leftMs }
      const settled = settle(handle, id, { verdict, act: by, retentionMs })
      return settled.kind === 'settled' ? undefined : settled
    }
    case 'forget': {
      const forgotten = forget(handle, id, by)
      return forgotten.kind === 'forgotten' ? undefined : forgotten
    }
    case 'unpark':
      return unpark(handle, id, by).kind === 'unparked' ? undefined : { kind: 'wrong-state', state }
    case 'park': {
      if (handle.run(parkSql, [id, nowMs]) === 0) return { kind: 'wrong-state', state }
      handle.run(endLookUpsSql, [id])
      return undefined
    }
    case 'look-up': {
      if (state !== 'unknown' || row.parked === 1) return { kind: 'wrong-state', state }
      const leftMs = row.look_up_asked_at_ms === null ? 0 : what.notWithinMs - (nowMs - row.look_up_asked_at_ms)
      if (leftMs > 0) return { kind: 'too-soon', leftMs }
      handle.run(lookUpSql, [id, nowMs])
      return undefined
    }
    case 'propose':
      return propose(handle, row, { request, what, nowMs })
    case 'take':
    case 'note':
    case 'reveal':
      return undefined
  }
}

const proposeSql = `
  INSERT INTO latchkey_proposals (proposal_id, id, scope, operation, act, detail, by, reason, evidence, fence, version, at_ms, expires_at_ms)
  VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)`

interface Proposing {
  readonly request: ActRequest
  readonly what: Extract<RowAct, { kind: 'propose' }>
  readonly nowMs: number
}

/** Bound to the version that the row has when it is made, which counts it. */
function propose(handle: Handle, row: SeenRow, { request, what, nowMs }: Proposing): undefined {
  const { id, by } = request
  const { fence, version } = versionOf({ ...row, acts: (row.acts ?? 0) + 1 }, row.parked === 1)
  handle.run(proposeSql, [
    ...[what.proposalId, id, row.scope, row.operation, what.act, what.detail, storable(by.by), storable(by.reason)],
    ...[storableOrNull(by.evidence), fence, version, nowMs, Math.ceil(nowMs + what.expiresInMs)],
  ])
}

function storableOrNull(text: string | undefined): string | null {
  return text === undefined ? null : storable(text)
}

/** Written with the act by the act itself. */
const auditsItself: readonly RowAct['kind'][] = ['settle', 'forget', 'unpark']

const auditSql = `INSERT INTO latchkey_audit (id, act, by, reason, detail, at_ms, scope) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)`
const countSql = `
  INSERT INTO latchkey_notes AS n (id, scope, owner, note, acts, look_up_asked_at_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
  ON CONFLICT (id) DO UPDATE SET acts = n.acts + excluded.acts, owner = COALESCE(excluded.owner, n.owner),
    note = COALESCE(excluded.note, n.note), look_up_asked_at_ms = COALESCE(excluded.look_up_asked_at_ms, n.look_up_asked_at_ms)`
// The entry is the last one of the row.
const detailSql = `
  INSERT INTO latchkey_audit_details (seq, source, request_id, evidence, from_state, to_state, fence)
  SELECT (SELECT MAX(a.seq) FROM latchkey_audit AS a WHERE a.id = ?1), ?2, ?3, ?4, ?5,
    COALESCE(?6, (SELECT k.state FROM latchkey_keys AS k WHERE k.id = ?1)), ?7
  RETURNING seq`

function audited(handle: Handle, row: SeenRow, { id, act: what, by }: ActRequest): string {
  const { kind } = what
  const nowMs = readNowMs(handle)
  if (!auditsItself.includes(kind)) {
    const detail = kind === 'propose' ? what.act : ''
    handle.run(auditSql, [id, kind, storable(by.by), storable(by.reason), detail, nowMs, row.scope])
  }
  if (kind !== 'forget') handle.run(countSql, [id, row.scope, ...notedBy(what, by, nowMs)])
  const [entry] = handle.rows(detailSql, [
    ...[id, by.source, by.requestId, storableOrNull(by.evidence), row.state, kind === 'forget' ? goneCode : null],
    row.fence,
  ])
  return String(entry?.seq)
}

/** Owner and note, how much it counts, and when a look-up was asked for; null: as it was. */
function notedBy(what: RowAct, { by, reason }: OperatorAct, nowMs: number): readonly SqliteParameter[] {
  const { kind } = what
  return [
    ...[kind === 'take' ? storable(by) : null, kind === 'note' ? storable(reason) : null],
    ...[decides(what) ? 1 : 0, kind === 'look-up' ? nowMs : null],
  ]
}
