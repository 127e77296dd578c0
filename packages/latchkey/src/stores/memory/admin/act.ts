/** What a person does to a row: its version is compared, the act done, its entry written, its proposal closed, without an await in between. */
import type { ActRequest, ActResult, NewEntry, RowAct, RowVersion } from '../../../ports/faculties/admin.ts'
import type { RowState } from '../../../ports/store.ts'
import { decides, isSameVersion, versionOf } from '../../shared/admin/version.ts'
import { stateCodes } from '../../shared/codes.ts'
import { forget, unpark } from '../keys/operator.ts'
import type { Row } from '../keys/row.ts'
import { settle } from '../reconcile/settle.ts'
import type { Tables } from '../tables.ts'

type Refused = Exclude<ActResult, { kind: 'acted' }>

export function rowVersion({ admin }: Tables, { id, fence, state, parked }: Row, more = 0): RowVersion {
  return versionOf({ fence, state: stateCodes[state], acts: (admin.notes.get(id)?.acts ?? 0) + more }, parked)
}

export function act(tables: Tables, request: ActRequest): ActResult {
  const { id, by, expected, proposalId } = request
  const before = actedBefore(tables, by.requestId)
  if (before !== undefined)
    return isEntryOf(tables, before, request)
      ? { kind: 'acted', auditId: before, repeated: true }
      : { kind: 'request-reused' }
  const row = tables.rows.get(id)
  if (row === undefined) return { kind: 'not-found' }
  if (!isSameVersion(rowVersion(tables, row), expected)) return { kind: 'row-moved' }
  if (proposalId !== undefined && !isOpen(tables, proposalId)) return { kind: 'proposal-closed' }
  const refused = perform(tables, row, request)
  if (refused !== undefined) return refused
  if (proposalId !== undefined) closeProposal(tables, proposalId, { to: 'approved', by: by.by })
  return { kind: 'acted', auditId: audited(tables, row, request), repeated: false }
}

export function actedBefore({ admin }: Tables, requestId: string): string | undefined {
  for (const [auditId, details] of admin.details)
    if (details.requestId === requestId && details.refused === undefined) return auditId
  return undefined
}

function isEntryOf({ log }: Tables, auditId: string, { id, act: what }: ActRequest): boolean {
  return log.audited.some(each => each.auditId === auditId && each.id === id && each.entry.act === what.kind)
}

function isOpen({ admin, now }: Tables, proposalId: string): boolean {
  const proposal = admin.proposals.get(proposalId)
  return proposal?.state === 'open' && proposal.expiresAtMs > now()
}

interface Closing {
  readonly to: 'approved' | 'rejected' | 'void'
  readonly by: string
}

/** Only an open one that has not expired. */
export function closeProposal(tables: Tables, proposalId: string, { to, by }: Closing): boolean {
  const proposal = tables.admin.proposals.get(proposalId)
  if (proposal === undefined || !isOpen(tables, proposalId)) return false
  tables.admin.proposals.set(proposalId, { ...proposal, state: to, decidedBy: by, detail: '' })
  return true
}

/** Undefined: it is done. */
function perform(tables: Tables, row: Row, request: ActRequest): Refused | undefined {
  const { id, act: what, by } = request
  const { state, doubt } = row
  const wrong = { kind: 'wrong-state', state } as const
  const nowMs = tables.now()
  switch (what.kind) {
    case 'settle': {
      const { verdict, quarantineMs, retentionMs } = what
      const leftMs = verdict.kind === 'never-happened' ? quarantineMs - (nowMs - (doubt?.sinceMs ?? nowMs)) : 0
      if (state === 'unknown' && leftMs > 0) return { kind: 'quarantine-not-over', leftMs }
      const settled = settle(tables, id, { verdict, act: by, retentionMs })
      return settled.kind === 'settled' ? undefined : settled
    }
    case 'forget': {
      const forgotten = forget(tables, id, by)
      return forgotten.kind === 'forgotten' ? undefined : forgotten
    }
    case 'unpark':
      return unpark(tables, id, by).kind === 'unparked' ? undefined : wrong
    case 'park': {
      if (row.parked || state === 'in_progress' || state === 'completed') return wrong
      const lastErrorCode = row.lastErrorCode ?? 'operator'
      tables.rows.set(id, { ...row, parked: true, lastErrorCode, doubt: doubt && { ...doubt, looking: false } })
      return undefined
    }
    case 'look-up': {
      if (doubt === undefined || row.parked) return wrong
      const askedAtMs = tables.admin.notes.get(id)?.lookUpAskedAtMs
      const leftMs = askedAtMs === undefined ? 0 : what.notWithinMs - (nowMs - askedAtMs)
      if (leftMs > 0) return { kind: 'too-soon', leftMs }
      const tries = Math.max(0, doubt.tries - 1)
      tables.rows.set(id, { ...row, doubt: { ...doubt, tries, looking: false, lookUpAtMs: nowMs } })
      return undefined
    }
    case 'propose':
      return propose(tables, row, { request, what, nowMs })
    case 'take':
    case 'note':
    case 'reveal':
      return undefined
  }
}

interface Proposing {
  readonly request: ActRequest
  readonly what: Extract<RowAct, { kind: 'propose' }>
  readonly nowMs: number
}

/** Bound to the version that the row has when it is made, which counts it. */
function propose(tables: Tables, row: Row, { request: { by }, what, nowMs }: Proposing): undefined {
  const { proposalId, act: acts, detail, expiresInMs } = what
  const { id, scope, operation } = row
  tables.admin.proposals.set(proposalId, {
    ...{ proposalId, id, scope, operation, act: acts, detail },
    ...{ by: by.by, reason: by.reason, evidence: by.evidence },
    expected: rowVersion(tables, row, 1),
    atMs: nowMs,
    expiresAtMs: nowMs + expiresInMs,
    state: 'open',
    decidedBy: undefined,
    seq: tables.admin.proposals.size,
  })
}

/** Written with the act by the act itself. */
const auditsItself: readonly RowAct['kind'][] = ['settle', 'forget', 'unpark']

function audited(tables: Tables, row: Row, { act: what, by }: ActRequest): string {
  const { admin, log, now } = tables
  const { id, scope, state, fence } = row
  const { source, requestId, evidence } = by
  const entry = {
    by: by.by,
    reason: by.reason,
    act: what.kind,
    atMs: now(),
    detail: what.kind === 'propose' ? what.act : '',
  }
  const auditId = auditsItself.includes(what.kind) ? String(log.audited.length) : log.addAudit({ id, scope }, entry)
  if (what.kind !== 'forget') noteAct(tables, row, { what, by: by.by, reason: by.reason })
  const to: RowState | 'gone' = tables.rows.get(id)?.state ?? 'gone'
  admin.details.set(auditId, { source, requestId, evidence, from: state, to, fence, refused: undefined })
  return auditId
}

interface Noted {
  readonly what: RowAct
  readonly by: string
  readonly reason: string
}

function noteAct({ admin, now }: Tables, { id, scope }: Row, { what, by, reason }: Noted): void {
  const { kind } = what
  const known = admin.notes.get(id)
  admin.notes.set(id, {
    scope,
    owner: kind === 'take' ? by : known?.owner,
    note: kind === 'note' ? reason : known?.note,
    acts: (known?.acts ?? 0) + (decides(what) ? 1 : 0),
    lookUpAskedAtMs: kind === 'look-up' ? now() : known?.lookUpAskedAtMs,
  })
}

/** A request that acted before adds nothing; its refused attempts are entries of their own. */
export function addEntry(tables: Tables, entry: NewEntry): void {
  if (entry.refused === undefined && actedBefore(tables, entry.requestId) !== undefined) return
  writeEntry(tables, entry)
}

export function writeEntry(tables: Tables, entry: NewEntry): string {
  const { id, scope, act: what, by, reason, detail, source, requestId, evidence, refused } = entry
  const auditId = tables.log.addAudit({ id, scope }, { by, reason, act: what, atMs: tables.now(), detail })
  const nothing = { from: undefined, to: undefined, fence: undefined }
  tables.admin.details.set(auditId, { source, requestId, evidence, refused, ...nothing })
  return auditId
}
