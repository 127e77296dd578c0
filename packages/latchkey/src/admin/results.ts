/** What the acts of an operator come to, and what the lists show. */
import type { ActSource, RateRow, WorkerRow, WorkGroup, WorkKind } from '../ports/faculties/admin.ts'
import type { Evidence, KeyRecord, OperationKind, RowState } from '../ports/store.ts'
import type { OpenEffect } from '../engine/inspected-row.ts'
import type { Right } from './rights.ts'

/** A row as an operator sees it. Bodies and inputs are not in it: `reveal` shows them, and is audited. */
export interface AdminRow {
  readonly id: string
  readonly scope: string
  readonly operation: string
  readonly state: RowState
  readonly parked: boolean
  /** `<fence>.<version>`, for the act that relies on what was read here. */
  readonly version: string
  readonly fence: number
  readonly attempts: number
  readonly crashes: number
  readonly recovery: KeyRecord['recovery']
  readonly description: string | undefined
  readonly cause: string | undefined
  readonly effect: string | undefined
  readonly owner: string | undefined
  readonly note: string | undefined
  readonly createdAtMs: number
  readonly expiresAtMs: number
  readonly completedAtMs: number | undefined
  readonly leaseLeftMs: number
  /** How long it waits: unknown, parked, or with a dead lease. */
  readonly waitsForMs: number | undefined
  /** Undefined: it is not unknown. Zero: the quarantine is over. */
  readonly quarantineLeftMs: number | undefined
  readonly nextLookUpInMs: number | undefined
  /** Pieces of evidence. */
  readonly evidence: number
}

export interface AdminKey extends AdminRow {
  readonly status: number | undefined
  readonly outcomeBytes: number | undefined
  readonly inputBytes: number | undefined
  /** Of phased and deferred work: the version of the definition that it needs. */
  readonly definitionVersion: number | undefined
  readonly references: readonly { readonly text: string; readonly atMs: number }[]
  readonly openEffect: OpenEffect | undefined
  /** What this person may do with the row as it is, and why not the rest. */
  readonly may: readonly Right[]
  readonly mayNot: readonly { readonly right: Right; readonly why: string }[]
}

export type TimelineEntry =
  | { readonly kind: 'created' | 'completed' | 'expires'; readonly atMs: number }
  | {
      readonly kind: 'step'
      readonly atMs: undefined
      readonly name: string
      readonly step: 'phase' | 'effect'
      readonly state: string
      readonly epoch: number
    }
  | ({ readonly kind: 'evidence' } & Evidence)
  | { readonly kind: 'reference'; readonly atMs: number; readonly text: string }
  | { readonly kind: 'unknown'; readonly atMs: number; readonly cause: string }
  | ({ readonly kind: 'act' } & AuditLineOfOperators)

export interface AuditLineOfOperators {
  readonly auditId: string
  readonly atMs: number
  readonly by: string
  readonly act: string
  readonly id: string | undefined
  readonly reason: string
  readonly detail: string
  readonly source: ActSource | undefined
  readonly requestId: string | undefined
  readonly evidence: string | undefined
  readonly from: RowState | undefined
  readonly to: RowState | 'gone' | undefined
  readonly fence: number | undefined
  readonly refused: string | undefined
}

/** Why nothing was done. Every one of them is audited, except `not-found` of a row that does not exist. */
export type Refusal =
  | { readonly kind: 'not-permitted'; readonly right: Right }
  | { readonly kind: 'not-found' }
  | { readonly kind: 'row-moved'; readonly row: AdminRow }
  | { readonly kind: 'wrong-state'; readonly state: RowState; readonly why: string }
  | { readonly kind: 'wrong-verdict'; readonly needs: 'value' | 'outcome'; readonly effect: string | undefined }
  | { readonly kind: 'quarantine-not-over'; readonly leftMs: number }
  | { readonly kind: 'too-soon'; readonly leftMs: number }
  | { readonly kind: 'too-many-acts'; readonly retryAfterMs: number }
  | { readonly kind: 'own-proposal' }
  | { readonly kind: 'proposal-closed'; readonly state: Proposal['state'] }
  | { readonly kind: 'not-supported'; readonly why: string }
  | { readonly kind: 'invalid'; readonly why: string }

/** `repeated`: the same request id acted before, and this is what it came to. */
export type ActOutcome =
  | { readonly kind: 'done'; readonly row: AdminRow | undefined; readonly auditId: string; readonly repeated: boolean }
  | { readonly kind: 'second-person-needed'; readonly proposal: Proposal }
  | Refusal

export type ReadRefusal = Extract<Refusal, { kind: 'not-permitted' | 'not-found' | 'not-supported' | 'invalid' }>

export type Read<T> = { readonly kind: 'found'; readonly value: T } | ReadRefusal

export interface Page<T> {
  readonly items: readonly T[]
  /** Give it as `after` for the next page. Undefined: this was the last one. */
  readonly next: string | undefined
  /** The time for the list was over before its end: there may be more than is shown. */
  readonly partial: boolean
}

export interface Proposal {
  readonly proposalId: string
  readonly id: string
  readonly scope: string
  readonly operation: string
  /** The right that its approval carries out, such as `settle.did_not_happen`. */
  readonly act: string
  readonly by: string
  readonly reason: string
  readonly evidence: string | undefined
  readonly version: string
  readonly atMs: number
  readonly expiresInMs: number
  readonly state: 'open' | 'approved' | 'rejected' | 'void' | 'expired'
  readonly decidedBy: string | undefined
}

export interface Session {
  readonly name: string
  readonly rights: readonly Right[]
  readonly limitScopes: readonly string[] | undefined
  readonly environment: string | undefined
  /** What this store cannot do, by the faculty that it lacks. */
  readonly missing: readonly string[]
}

export interface Overview {
  readonly unknown: { readonly count: number; readonly oldestMs: number }
  readonly parked: { readonly count: number; readonly oldestMs: number }
  readonly overdue: { readonly count: number; readonly oldestMs: number }
  readonly outbox: { readonly waiting: number; readonly oldestMs: number; readonly parked: number } | undefined
  readonly inbox: { readonly waiting: number } | undefined
  readonly workers: readonly WorkerRow[]
  readonly rates: readonly RateRow[]
  readonly partial: boolean
}

export interface WorkGroups {
  readonly kind: WorkKind
  readonly groups: readonly WorkGroup[]
  readonly partial: boolean
}

/** What the process that serves the screens has declared, and how it behaves in the whole fleet. */
export interface OperationView {
  readonly name: string
  readonly kind: OperationKind
  readonly retentionMs: number
  readonly quarantineMs: number
  /** Of guarded work. Atomic work has no lease, and every step of phased work its own. */
  readonly leaseMs: number | undefined
  /** Of guarded work: what a throw, a 5xx and a dead lease mean. */
  readonly onFailure: 'hold' | 'rerun' | 'store' | undefined
  /** How many outcomes are unknown now. Undefined, as below, or for a person with `limitScopes`: of other tenants they are not counted. */
  readonly unknown: number | undefined
  /** Undefined: the store has no table of them (`traits.faculties` has no `admin`). */
  readonly lastHour: LastHour | undefined
}

/** Counted in every process and added up every ten seconds. */
export interface LastHour {
  readonly reserved: number
  readonly replayed: number
  /** Requests that used the key of another one. */
  readonly mismatched: number
  /** Undefined: nothing was executed. */
  readonly took: Took | undefined
}

/** How long executions took, whatever they ended with; of phased work, each attempt. */
export interface Took {
  readonly executions: number
  /**
   * At most so long: durations are counted in steps (1, 2, 5, 10 … ms), and this is the upper edge of the step that half of the executions are in or
   * below. Undefined: longer than an hour.
   */
  readonly p50Ms: number | undefined
  readonly p99Ms: number | undefined
  /** `p99Ms` as a share of the lease: 0.5 is half of it. Undefined: there is no lease, or no `p99Ms`. */
  readonly leaseUsed: number | undefined
}

export interface ParkedMessageView {
  readonly position: string
  readonly topic: string
  readonly aggregate: string | undefined
  /** By which its consumer would recognise it. */
  readonly dedupId: string
  readonly lane: number
  readonly attempts: number
  readonly cause: string
  readonly parkedAtMs: number
  readonly createdAtMs: number
  readonly history: readonly { readonly atMs: number; readonly error: string }[]
}

export interface ParkedInboxView {
  readonly id: string
  readonly consumer: string
  readonly operation: string
  readonly source: string
  readonly cause: string
  readonly attempts: number
  readonly times: number
  readonly rowId: string | undefined
  readonly firstParkedAtMs: number
  readonly parkedAtMs: number
  readonly redriving: boolean
}

export type Revealed =
  | {
      readonly kind: 'revealed'
      readonly what: 'input' | 'outcome'
      readonly status?: number
      readonly headers?: readonly (readonly [string, string])[]
      readonly body: Uint8Array
      readonly auditId: string
    }
  | Refusal

export interface BulkPlan {
  readonly bulkId: string
  readonly act: BulkAct
  readonly state: 'planned' | 'running' | 'done' | 'cancelled'
  readonly by: string
  readonly reason: string
  readonly matched: number
  /** By reason, how many were left out. */
  readonly excluded: Readonly<Record<string, number>>
  /** The first five rows. */
  readonly sample: readonly string[]
  readonly validInMs: number
  readonly finished: number
}

export type BulkAct = 'take' | 'look_up' | 'resume' | 'redrive' | 'import_evidence'

export interface BulkRow {
  readonly at: number
  readonly id: string
  /** `done`, `second-person-needed`, or the kind of a refusal. Undefined: nothing yet. */
  readonly result: string | undefined
}

export type BulkOutcome = { readonly kind: 'planned' | 'started' | 'cancelled'; readonly plan: BulkPlan } | Refusal
