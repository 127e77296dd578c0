/**
 * What operators need of a store beside the rows themselves: acts that commit with their audit, and tables that show the fleet and not one process.
 *
 * version    of a row, for people who decide on what they have read: it changes with the state, with the parked mark, and with every act that
 *            decides something; a note, a look-up and a reveal do not
 * act        what a person does to a row; its audit entry is in the same commit, and its request id makes it happen once
 * proposal   an act that waits for a second person, bound to the version it was made for
 * bulk       the same act on many rows, which are fixed when it is planned; each has a result of its own
 * skip       what a person does to a parked message of the outbox: it is never delivered, and those behind it are delivered without it
 *
 * No call counts or scans the keys: lists come from the queues of rows that are out of the ordinary, and from the tables here.
 */
import type { FoundVerdict } from '../reconciliation.ts'
import type { KeyRecord, RowState } from '../store.ts'

/** Where an act came from. */
export type ActSource = 'console' | 'cli' | 'api' | 'library'

export interface RowVersion {
  readonly fence: number
  readonly version: number
}

/** Who acts, why, and by which request: the same request id again is the same act. */
export interface OperatorAct {
  readonly by: string
  readonly reason: string
  readonly source: ActSource
  readonly requestId: string
  /** What the person relies on, such as `ticket:4711`; at most 300 characters. */
  readonly evidence?: string | undefined
}

/** What is done to a row. */
export type RowAct =
  | {
      readonly kind: 'settle'
      readonly verdict: FoundVerdict
      readonly retentionMs: number
      /** A "never happened" is refused before the row was unknown for this long. Zero: the provider has denied it. */
      readonly quarantineMs: number
    }
  | { readonly kind: 'forget' | 'park' | 'unpark' | 'take' | 'note' | 'reveal' }
  /** The next look-up is due now. Refused within `notWithinMs` of the last one that was asked for. */
  | { readonly kind: 'look-up'; readonly notWithinMs: number }
  | {
      readonly kind: 'propose'
      readonly proposalId: string
      readonly act: string
      readonly detail: string
      readonly expiresInMs: number
    }

export interface ActRequest {
  readonly id: string
  readonly act: RowAct
  readonly by: OperatorAct
  /** What the person has seen. Any other version: nothing is done. */
  readonly expected: RowVersion
  /** Closed with the act, as approved. Not open any more: nothing is done. */
  readonly proposalId?: string | undefined
}

/**
 * `repeated`: this request id has done this act to this row before; the audit entry is that one. `request-reused`: it has done another act, or to another
 * row, so that nothing is done: the entry that there is would be about something else.
 */
export type ActResult =
  | { readonly kind: 'acted'; readonly auditId: string; readonly repeated: boolean }
  | { readonly kind: 'request-reused' }
  | { readonly kind: 'not-found' }
  | { readonly kind: 'row-moved' }
  | { readonly kind: 'wrong-state'; readonly state: RowState }
  | { readonly kind: 'wrong-verdict'; readonly needs: 'value' | 'outcome'; readonly effect: string | undefined }
  | { readonly kind: 'quarantine-not-over'; readonly leftMs: number }
  | { readonly kind: 'too-soon'; readonly leftMs: number }
  | { readonly kind: 'proposal-closed' }

export interface SkipRequest {
  /** Of a parked message. */
  readonly position: string
  readonly by: OperatorAct
}

/** `not-found`: there is none, or it is not parked: redriven, delivered or skipped. */
export type SkipResult = Extract<ActResult, { kind: 'acted' | 'not-found' }>

/** An entry of the audit, of rows and of everything else that operators act on. */
export interface OperatorEntry {
  readonly auditId: string
  readonly atMs: number
  readonly by: string
  readonly act: string
  /** The row's id. Undefined: it is about something else, which `detail` names. */
  readonly id: string | undefined
  readonly reason: string
  readonly detail: string
  /** Undefined: it was written by a release without these. */
  readonly source: ActSource | undefined
  readonly requestId: string | undefined
  readonly evidence: string | undefined
  readonly from: RowState | undefined
  readonly to: RowState | 'gone' | undefined
  readonly fence: number | undefined
  /** Why nothing was done: a refused attempt. */
  readonly refused: string | undefined
}

export interface NewEntry extends OperatorAct {
  readonly act: string
  readonly id?: string | undefined
  /** The row's, so that it is erased with its tenant. */
  readonly scope?: string | undefined
  readonly detail: string
  readonly refused?: string | undefined
}

export interface EntryQuery {
  readonly by?: string | undefined
  readonly id?: string | undefined
  /** Newer than this entry; pages then go forward in time. */
  readonly after?: string | undefined
  /** Older than this entry; pages then go back in time. Neither: the newest. */
  readonly before?: string | undefined
  readonly limit: number
}

/** What the operators' tables hold about one row. */
export interface RowNotes {
  readonly version: RowVersion
  readonly owner: string | undefined
  readonly note: string | undefined
  /** Only of an unknown row. */
  readonly unknown: UnknownFacts | undefined
}

export interface UnknownFacts {
  readonly cause: string
  readonly sinceMs: number
  /** How long, by the store's clock. */
  readonly forMs: number
  /** Undefined: none is planned yet. Zero or less: due. */
  readonly nextLookUpInMs: number | undefined
  readonly lookUps: number
}

export type WorkKind = 'unknown' | 'parked' | 'overdue'

export interface WorkListing {
  readonly kind: WorkKind
  readonly operation?: string | undefined
  readonly scope?: string | undefined
  readonly cause?: string | undefined
  readonly owner?: string | undefined
  readonly olderThanMs?: number | undefined
  readonly limit: number
  readonly after?: string | undefined
}

export interface WorkRow {
  /** Without its outcome. */
  readonly record: KeyRecord
  readonly notes: RowNotes
  readonly cause: string | undefined
  readonly effect: string | undefined
  /** Since when it waits: unknown, parked, or with a dead lease. */
  readonly waitsForMs: number
  readonly evidence: number
}

/** `partial`: the time for it was over, and there may be more. */
export interface WorkPage {
  readonly rows: readonly WorkRow[]
  readonly next: string | undefined
  readonly partial: boolean
}

export interface WorkGroup {
  readonly operation: string
  readonly cause: string | undefined
  /** Counted up to 10,000 over all groups. */
  readonly count: number
  readonly oldestMs: number
}

export interface Groups {
  readonly groups: readonly WorkGroup[]
  readonly partial: boolean
}

/** What groups add up to. */
export interface WorkSum {
  readonly count: number
  readonly oldestMs: number
  /** There are more, or the time for it was over. */
  readonly partial: boolean
}

export interface StoredProposal {
  readonly proposalId: string
  readonly id: string
  readonly scope: string
  readonly operation: string
  readonly act: string
  /** JSON text: what would be done. */
  readonly detail: string
  readonly by: string
  readonly reason: string
  readonly evidence: string | undefined
  readonly expected: RowVersion
  readonly atMs: number
  readonly expiresInMs: number
  readonly state: 'open' | 'approved' | 'rejected' | 'void'
  readonly decidedBy: string | undefined
}

export interface WorkerBeat {
  /** Names the process: host, process id and a random part. */
  readonly process: string
  readonly loop: string
  readonly lastTurnAgoMs: number | undefined
  readonly turns: number
  readonly failures: number
  readonly lastError: string | undefined
  /** JSON text; of the reconciler, the quarantine of each operation. */
  readonly detail: string | undefined
}

export interface WorkerRow extends WorkerBeat {
  /** When the process last wrote this. */
  readonly seenAgoMs: number
}

export interface Rate {
  readonly operation: string
  readonly metric: string
  readonly count: number
}

export interface RateRow extends Rate {
  /** When the minute began. */
  readonly minuteMs: number
}

export interface RateQuery {
  readonly sinceMs: number
  /** Others are left out: durations are counted in many, and a list by minute has no use for them. */
  readonly metrics: readonly string[]
}

export interface NewBulk {
  readonly bulkId: string
  readonly act: string
  readonly by: string
  readonly reason: string
  readonly detail: string
  readonly validInMs: number
  readonly rows: readonly NewBulkRow[]
}

export interface NewBulkRow {
  /** The row's id, or the position of a message. */
  readonly id: string
  readonly expected: RowVersion | undefined
  /** JSON text: what is special about this row. */
  readonly detail: string | undefined
}

export interface StoredBulk extends Omit<NewBulk, 'rows'> {
  readonly state: 'planned' | 'running' | 'done' | 'cancelled'
  readonly atMs: number
  readonly total: number
  readonly finished: number
}

export interface BulkMove {
  readonly from: readonly StoredBulk['state'][]
  readonly to: StoredBulk['state']
}

export interface StoredBulkRow extends NewBulkRow {
  readonly at: number
  /** What became of it. Undefined: nothing yet. */
  readonly result: string | undefined
}

/** Up to 1,000. `more`: there are more, or the rest was not looked at. */
export interface Counted {
  readonly count: number
  readonly more: boolean
}

/** A lane of the outbox. */
export interface LaneState {
  readonly lane: number
  /** Neither delivered nor parked. */
  readonly waiting: Counted
  readonly parked: Counted
  /** Of those that wait, the ones that were set aside behind a parked message of their aggregate. */
  readonly behind: Counted
  /** Age of the oldest that waits, among those that were counted; 0: none does. */
  readonly oldestMs: number
  /** Undefined: no relay works on it. */
  readonly lease: LaneHolder | undefined
}

export interface LaneHolder {
  /** The relay's process: host, process id and a random part. */
  readonly by: string
  /** Zero or less: it is over, and its relay has died. */
  readonly leftMs: number
}

/** `partial`: the time for it was over, and no lane is shown. */
export interface Lanes {
  readonly lanes: readonly LaneState[]
  readonly partial: boolean
}

export interface AdminRecords {
  /** One commit: the version is compared, the act is done, its audit entry written, its proposal closed. */
  act(request: ActRequest): Promise<ActResult>
  /**
   * Only a parked message, of a store with an outbox. One commit: it leaves its place, so that no relay delivers it and the next ones of its
   * aggregate are due, and its audit entry `outbox.skip` names its topic, its aggregate and its dedup id.
   */
  skip(request: SkipRequest): Promise<SkipResult>
  /** The lanes of the outbox that have anything, a message or a lease, by their number. */
  lanes(): Promise<Lanes>
  notes(id: string): Promise<RowNotes | undefined>
  work(listing: WorkListing): Promise<WorkPage>
  groups(kind: WorkKind): Promise<Groups>
  /** The groups added up: screens ask for it every few seconds, so a store answers it from its queue where it can. */
  sum(kind: WorkKind): Promise<WorkSum>

  /** An entry by itself: a refused attempt, or an act on something that is not a row. The same request id and act again: that entry. */
  addEntry(entry: NewEntry): Promise<void>
  entries(query: EntryQuery): Promise<readonly OperatorEntry[]>

  /** Open ones first, newest first. */
  proposals(options: { readonly limit: number }): Promise<readonly StoredProposal[]>
  proposal(proposalId: string): Promise<StoredProposal | undefined>
  /** Without an act: rejected, or void because the row has moved. The entry is in the same commit. `false`: it was not open. */
  closeProposal(proposalId: string, state: 'rejected' | 'void', entry: NewEntry): Promise<boolean>

  planBulk(plan: NewBulk, entry: NewEntry): Promise<void>
  bulk(bulkId: string): Promise<StoredBulk | undefined>
  bulkRows(
    bulkId: string,
    options: { readonly limit: number; readonly after?: number },
  ): Promise<readonly StoredBulkRow[]>
  /** `entry`: in the same commit. `false`: it was in none of the states `from`, and nothing is written. */
  moveBulk(bulkId: string, move: BulkMove, entry?: NewEntry): Promise<boolean>
  /** The first result of a row stays: one that two processes run is done once, and the second only hears that it was. */
  setBulkResult(bulkId: string, at: number, result: string): Promise<void>

  beat(beats: readonly WorkerBeat[]): Promise<void>
  workers(): Promise<readonly WorkerRow[]>
  addRates(rates: readonly Rate[]): Promise<void>
  rates(query: RateQuery): Promise<readonly RateRow[]>
  /** The same, added up over the minutes. */
  rateSums(query: RateQuery): Promise<readonly Rate[]>
  /** Deletes minutes older than a day, workers that were silent for a day, and proposals and plans that are over for thirty. Returns how many. */
  prune(options: { readonly limit: number }): Promise<number>
}
