/** What operators may do, with rights, a second person and an audit. The routes and the command line stand on it. */
import type { ActSource, Lanes, RateRow, WorkerRow, WorkKind } from '../ports/faculties/admin.ts'
import type { IdentityParts, Scope } from '../engine/request.ts'
import type { Person, Right } from './rights.ts'
import type {
  ActOutcome,
  AdminKey,
  AdminRow,
  AuditLineOfOperators,
  BulkOutcome,
  BulkPlan,
  BulkRow,
  OperationView,
  Overview,
  Page,
  ParkedInboxView,
  ParkedMessageView,
  Proposal,
  Read,
  Revealed,
  Session,
  TimelineEntry,
  WorkGroups,
} from './results.ts'

/** Who asks, and through what. */
export interface Asker {
  readonly who: Person
  readonly source: ActSource
}

/** Who acts. The same request id again is the same act: it is done once. For another act, or on another row, it is refused. */
export interface Actor extends Asker {
  /** Default: a new one, so that a repetition is a second act. */
  readonly requestId?: string | undefined
}

export interface WorkFilter {
  readonly kind: WorkKind
  readonly operation?: string
  readonly scope?: Scope
  readonly cause?: string
  readonly owner?: string
  readonly olderThanMs?: number
  /** At most 100. Default 50. */
  readonly limit?: number
  readonly after?: string
}

export type FindWhat = IdentityParts | { readonly reference: string } | { readonly id: string }

/** Every act on a row needs the version that was read, and a reason. */
export interface OnRow {
  readonly id: string
  /** `version` of the row as it was read. */
  readonly version: string
  readonly reason: string
}

export interface SettleGiven extends OnRow {
  /** The open effect that the answer is about. Of guarded work: left out. */
  readonly effect?: string | undefined
  readonly answer: 'happened' | 'declined' | 'did_not_happen' | 'still_unknown'
  readonly evidence?: EvidenceGiven | undefined
  /** Guarded work, or phased work without an open effect: the answer that clients get. */
  readonly response?: { readonly status: number; readonly json: unknown } | undefined
}

export interface EvidenceGiven {
  /** `denial`: the provider says explicitly that it has no such request and will not execute it; it counts inside the quarantine as well. */
  readonly kind: 'reference' | 'ticket' | 'export' | 'denial' | 'other'
  readonly reference: string
  /** The value of the open effect, as its function would have returned it. */
  readonly value?: unknown
}

/** Exactly one of the last three says which rows. */
export interface BulkGiven {
  readonly act: 'take' | 'look_up' | 'resume' | 'redrive' | 'import_evidence'
  readonly reason: string
  readonly ids?: readonly string[] | undefined
  readonly filter?: Omit<WorkFilter, 'limit' | 'after'> | undefined
  /** CSV text of a provider's export, and what its columns mean. */
  readonly file?: ImportFile | undefined
}

export interface ImportFile {
  readonly csv: string
  /** The column with the downstream key, or with the reference that the handler recorded. */
  readonly match: { readonly column: string; readonly by: 'downstream_key' | 'reference' | 'id' }
  /** The column with the provider's status, and which of its values mean what. A status in none of the lists is left out. */
  readonly status: {
    readonly column: string
    readonly happened: readonly string[]
    readonly didNotHappen: readonly string[]
  }
  /** The column with the provider's id, which becomes the reference of the evidence. Default: the matched one. */
  readonly reference?: string | undefined
  /** The column with the effect's value as JSON. Default: the value is `{ "id": <reference>, "status": <status> }`. */
  readonly value?: string | undefined
}

export interface StartBulkGiven {
  readonly bulkId: string
  readonly signal?: AbortSignal
  readonly onRow?: (row: BulkRow) => void
  /** Given: the call resolves when the plan has begun, and hands the rest over here. */
  readonly inBackground?: (work: Promise<void>) => void
}

export interface AuditFilter {
  readonly who?: string
  readonly id?: string
  /** Forward from this entry. Neither of the two: the newest first. */
  readonly after?: string
  /** Back from this entry. */
  readonly before?: string
  readonly limit?: number
}

export interface Admin {
  session(by: Asker): Session
  overview(by: Asker): Promise<Read<Overview>>
  operations(by: Asker): Promise<Read<readonly OperationView[]>>
  workers(by: Asker): Promise<Read<readonly WorkerRow[]>>
  /** By operation and minute, of the whole fleet; at most the last day. Default: the last hour. */
  rates(by: Asker, options?: { readonly sinceMs?: number }): Promise<Read<readonly RateRow[]>>

  /** The queue: what is unknown, parked, or overdue. */
  work(by: Asker, filter: WorkFilter): Promise<Read<Page<AdminRow>>>
  groups(by: Asker, kind: WorkKind): Promise<Read<WorkGroups>>
  /** By scope, operation and key; by a reference that a handler recorded; or by id. At most 100 rows. */
  find(by: Asker, what: FindWhat): Promise<Read<readonly AdminRow[]>>
  key(by: Asker, id: string): Promise<Read<AdminKey>>
  timeline(by: Asker, id: string): Promise<Read<readonly TimelineEntry[]>>

  /** Each call is an entry of the audit, also under a request id that has revealed before. */
  reveal(by: Actor, given: OnRow & { readonly what: 'input' | 'outcome' }): Promise<Revealed>
  /** Has the provider asked by the next turn of a reconciler. Once in 30 s for each row. */
  lookUp(by: Actor, given: OnRow): Promise<ActOutcome>
  settle(by: Actor, given: SettleGiven): Promise<ActOutcome>
  park(by: Actor, given: OnRow): Promise<ActOutcome>
  resume(by: Actor, given: OnRow): Promise<ActOutcome>
  take(by: Actor, given: OnRow): Promise<ActOutcome>
  /** The reason is the note. */
  note(by: Actor, given: OnRow): Promise<ActOutcome>
  /** `confirm`: the first four characters of the row's id. */
  forget(by: Actor, given: OnRow & { readonly confirm: string }): Promise<ActOutcome>

  outbox(by: Asker): Promise<
    Read<{
      readonly waiting: number
      readonly heldBack: number
      readonly oldestMs: number
      readonly parked: number
      readonly lanes: number
    }>
  >
  /** Those that have anything, one by one: what waits, what is parked, what waits behind that, and whose lease it is. */
  outboxLanes(by: Asker): Promise<Read<Lanes>>
  outboxParked(
    by: Asker,
    page?: { readonly limit?: number; readonly after?: string },
  ): Promise<Read<Page<ParkedMessageView>>>
  redriveOutbox(by: Actor, given: { readonly position: string; readonly reason: string }): Promise<ActOutcome>
  /** A parked message is never delivered, and those behind it are. The audit names what its consumer misses. */
  skipOutbox(by: Actor, given: { readonly position: string; readonly reason: string }): Promise<ActOutcome>
  inboxParked(
    by: Asker,
    page?: { readonly consumer?: string; readonly limit?: number; readonly after?: string },
  ): Promise<Read<Page<ParkedInboxView>>>
  redriveInbox(
    by: Actor,
    given: { readonly id: string; readonly reason: string; readonly as?: string },
  ): Promise<ActOutcome>
  discardInbox(by: Actor, given: { readonly id: string; readonly reason: string }): Promise<ActOutcome>

  proposals(by: Asker): Promise<Read<readonly Proposal[]>>
  approve(by: Actor, given: { readonly proposalId: string; readonly reason: string }): Promise<ActOutcome>
  reject(by: Actor, given: { readonly proposalId: string; readonly reason: string }): Promise<ActOutcome>

  /** Nothing is done yet: the rows are fixed, and the plan says which were left out and why. At most 1,000 rows. */
  planBulk(by: Actor, given: BulkGiven): Promise<BulkOutcome>
  /** Runs to its end, or until `signal` aborts; called again it continues. `onRow` gets each result. */
  startBulk(by: Actor, given: StartBulkGiven): Promise<BulkOutcome>
  cancelBulk(by: Actor, given: { readonly bulkId: string }): Promise<BulkOutcome>
  bulk(by: Asker, bulkId: string): Promise<Read<BulkPlan>>
  bulkRows(
    by: Asker,
    bulkId: string,
    page?: { readonly limit?: number; readonly after?: number },
  ): Promise<Read<readonly BulkRow[]>>

  audit(by: Asker, filter?: AuditFilter): Promise<Read<Page<AuditLineOfOperators>>>
}

/** Whether an act needs a second person: always, never, or by the row. */
export type Approval = 'always' | 'never' | ((row: AdminRow) => boolean)

export interface AdminOptions {
  /** Which acts wait for a second person. Default: `settle.did_not_happen` and `forget`, always. */
  readonly approvals?: { readonly 'settle.did_not_happen'?: Approval; readonly forget?: Approval }
  /** Shown beside the name of the person, such as `production`. */
  readonly environment?: string
  /**
   * How long after a row became unknown the answer "did not happen" is refused, by operation. Default: what the reconcilers of the fleet report, otherwise
   * 10 minutes.
   */
  readonly quarantineMs?: (operation: string) => number | undefined
  /** How many acts a person may do in a minute, over the whole fleet. Default 60. */
  readonly actsPerMinute?: number
  /** Removes from what `reveal` shows what operators need not see. Default: nothing. */
  readonly redact?: (operation: string, what: 'input' | 'outcome', body: Uint8Array) => Uint8Array
}

export type { Person, Right }
