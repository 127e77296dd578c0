/** Columns of the operators' tables, as SQL drivers give them, to what the port shows. */
import type {
  ActSource,
  Groups,
  OperatorEntry,
  Rate,
  RateRow,
  RowNotes,
  StoredBulk,
  StoredBulkRow,
  StoredProposal,
  UnknownFacts,
  WorkerRow,
  WorkGroup,
  WorkPage,
  WorkRow,
  WorkSum,
} from '../../../ports/faculties/admin.ts'
import { rowStateOf, stateCodes } from '../codes.ts'
import { type RawNumber, recordOf, type RecordRow } from '../record-row.ts'
import { groupedMax } from './limits.ts'
import { versionOf } from './version.ts'

type Text = string | null
type Count = RawNumber | null

/** Beside those of the row. The look-up's are null where it is not unknown. */
export interface NotesColumns extends Pick<RecordRow, 'fence' | 'state' | 'parked_at_ms'> {
  readonly now_ms: RawNumber
  readonly acts: Count
  readonly owner: Text
  readonly note: Text
  readonly cause: Text
  readonly since_ms: Count
  readonly look_up_at_ms: Count
  readonly looks: Count
}

export interface WorkColumns extends NotesColumns, RecordRow {
  readonly effect: Text
  readonly evidence: RawNumber
  /** Since when it waits, in the store's finest unit: pages go by it. */
  readonly waits_since: RawNumber
  readonly waits_since_ms: RawNumber
}

export function notesOf(row: NotesColumns): RowNotes {
  const parked = row.parked_at_ms !== null
  return {
    version: versionOf(row, parked),
    owner: row.owner ?? undefined,
    note: row.note ?? undefined,
    unknown: Number(row.state) === stateCodes.unknown ? unknownFacts(row, parked) : undefined,
  }
}

function unknownFacts({ cause, since_ms, now_ms, look_up_at_ms, looks }: NotesColumns, parked: boolean): UnknownFacts {
  const sinceMs = Math.floor(Number(since_ms ?? now_ms))
  const nextMs = look_up_at_ms === null || parked || Number(looks) === 0 ? Number.NaN : Number(look_up_at_ms)
  return {
    cause: cause ?? 'lease-expired',
    sinceMs,
    forMs: Math.max(0, Math.floor(Number(now_ms)) - sinceMs),
    nextLookUpInMs: Number.isFinite(nextMs) ? Math.ceil(nextMs - Number(now_ms)) : undefined,
    lookUps: Number(looks ?? 0),
  }
}

export function workRowOf(row: WorkColumns): WorkRow {
  const nowMs = Number(row.now_ms)
  return {
    record: { ...recordOf(row, nowMs), outcome: undefined },
    notes: notesOf(row),
    cause: row.cause ?? undefined,
    effect: row.effect ?? undefined,
    waitsForMs: Math.max(0, Math.floor(nowMs - Number(row.waits_since_ms))),
    evidence: Number(row.evidence),
  }
}

/** `rows`: one more than the page has. */
export function workPage(rows: readonly WorkColumns[], limit: number): WorkPage {
  const page = rows.slice(0, limit)
  const last = page.at(-1)
  const next = rows.length > limit && last !== undefined ? `${last.waits_since}_${last.id}` : undefined
  return { rows: page.map(workRowOf), next, partial: false }
}

/** More than a list of groups counts to: there may be others behind them. */
export function groupsOf(groups: readonly WorkGroup[]): Groups {
  return { groups, partial: groups.reduce((sum, { count }) => sum + count, 0) > groupedMax }
}

export function sumOf({ groups, partial }: Groups): WorkSum {
  const count = groups.reduce((sum, group) => sum + group.count, 0)
  return { count, oldestMs: Math.max(0, ...groups.map(({ oldestMs }) => oldestMs)), partial }
}

/** What the page begins after: since when the last row of the one before waits, and its id. */
export function workAfter(after: string | undefined): readonly [since: string | null, id: string | null] {
  const [, since = null, id = null] = /^(\d{1,16})_([0-9a-f-]{36})$/.exec(after ?? '') ?? []
  return [since, id]
}

export interface EntryColumns {
  readonly audit_id: RawNumber
  readonly at_ms: RawNumber
  readonly by: string
  readonly act: string
  readonly key_id: Text
  readonly reason: string
  readonly detail: string
  readonly source: Text
  readonly request_id: Text
  readonly evidence: Text
  readonly from_state: Count
  readonly to_state: Count
  readonly fence: Count
  readonly refused: Text
}

/** The row is gone: it was forgotten. */
export const goneCode = -1

export function entryOf(row: EntryColumns): OperatorEntry {
  return {
    auditId: String(row.audit_id),
    atMs: Math.floor(Number(row.at_ms)),
    by: row.by,
    act: row.act,
    id: row.key_id ?? undefined,
    reason: row.reason,
    detail: row.detail,
    // Written by this release, or null.
    source: (row.source as ActSource | null) ?? undefined,
    requestId: row.request_id ?? undefined,
    evidence: row.evidence ?? undefined,
    from: row.from_state === null ? undefined : rowStateOf(Number(row.from_state)),
    to: toState(row.to_state),
    fence: row.fence === null ? undefined : Number(row.fence),
    refused: row.refused ?? undefined,
  }
}

function toState(code: Count): OperatorEntry['to'] {
  if (code === null) return undefined
  return Number(code) === goneCode ? 'gone' : rowStateOf(Number(code))
}

export interface ProposalColumns {
  readonly proposal_id: string
  readonly key_id: string
  readonly scope: string
  readonly operation: string
  readonly act: string
  readonly detail: string
  readonly by: string
  readonly reason: string
  readonly evidence: Text
  readonly fence: RawNumber
  readonly version: RawNumber
  readonly at_ms: RawNumber
  readonly expires_in_ms: RawNumber
  readonly state: string
  readonly decided_by: Text
}

export function proposalOf(row: ProposalColumns): StoredProposal {
  return {
    proposalId: row.proposal_id,
    id: row.key_id,
    scope: row.scope,
    operation: row.operation,
    act: row.act,
    detail: row.detail,
    by: row.by,
    reason: row.reason,
    evidence: row.evidence ?? undefined,
    expected: { fence: Number(row.fence), version: Number(row.version) },
    atMs: Math.floor(Number(row.at_ms)),
    expiresInMs: Math.ceil(Number(row.expires_in_ms)),
    // Only this release writes the column.
    state: row.state as StoredProposal['state'],
    decidedBy: row.decided_by ?? undefined,
  }
}

export interface BulkColumns {
  readonly bulk_id: string
  readonly act: string
  readonly by: string
  readonly reason: string
  readonly detail: string
  readonly state: string
  readonly at_ms: RawNumber
  readonly valid_in_ms: RawNumber
  readonly total: RawNumber
  readonly finished: RawNumber
}

export function bulkOf(row: BulkColumns): StoredBulk {
  return {
    bulkId: row.bulk_id,
    act: row.act,
    by: row.by,
    reason: row.reason,
    detail: row.detail,
    // Only this release writes the column.
    state: row.state as StoredBulk['state'],
    atMs: Math.floor(Number(row.at_ms)),
    validInMs: Math.ceil(Number(row.valid_in_ms)),
    total: Number(row.total),
    finished: Number(row.finished),
  }
}

export interface BulkRowColumns {
  readonly at: RawNumber
  readonly target: string
  readonly fence: Count
  readonly version: Count
  readonly detail: Text
  readonly result: Text
}

export function bulkRowOf({ at, target, fence, version, detail, result }: BulkRowColumns): StoredBulkRow {
  return {
    at: Number(at),
    id: target,
    expected: fence === null ? undefined : { fence: Number(fence), version: Number(version) },
    detail: detail ?? undefined,
    result: result ?? undefined,
  }
}

export interface WorkerColumns {
  readonly process: string
  readonly loop: string
  readonly seen_ago_ms: RawNumber
  readonly last_turn_ago_ms: Count
  readonly turns: RawNumber
  readonly failures: RawNumber
  readonly last_error: Text
  readonly detail: Text
}

export function workerOf(row: WorkerColumns): WorkerRow {
  return {
    process: row.process,
    loop: row.loop,
    seenAgoMs: Math.floor(Number(row.seen_ago_ms)),
    lastTurnAgoMs: row.last_turn_ago_ms === null ? undefined : Math.floor(Number(row.last_turn_ago_ms)),
    turns: Number(row.turns),
    failures: Number(row.failures),
    lastError: row.last_error ?? undefined,
    detail: row.detail ?? undefined,
  }
}

export interface RateSumColumns {
  readonly operation: string
  readonly metric: string
  readonly count: RawNumber
}

export interface RateColumns extends RateSumColumns {
  readonly minute_ms: RawNumber
}

export function rateSumOf({ operation, metric, count }: RateSumColumns): Rate {
  return { operation, metric, count: Number(count) }
}

export function rateOf({ minute_ms, ...columns }: RateColumns): RateRow {
  return { minuteMs: Math.floor(Number(minute_ms)), ...rateSumOf(columns) }
}
